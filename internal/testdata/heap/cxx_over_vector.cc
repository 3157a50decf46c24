// data() is filled for as many elements as were expected, not as there are.
#include <vector>

#include "lib/hide.h"

NOINLINE static void fill(int *to, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = 0x76767676;
}

NOINLINE static int last(int expected)
{
    std::vector<int> v(10); // @made
#ifdef FIXED
    v.resize(expected);
#endif
    fill(hide(v.data()), expected);
    return v.back();
} // @last

int main()
{
    // WANT: heap-overflow:@made..@last
    // HEAP: heap-overflow object=40 offset=40 bytes=8 text=vvvvvvvv reaches api=new alloc:@made call:@made..@last
    return last(12) != 0x76767676;
}
