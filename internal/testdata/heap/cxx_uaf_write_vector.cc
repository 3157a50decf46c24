// A reference to an element is assigned to after the vector grew.
#include <vector>

#include "lib/hide.h"

NOINLINE static void assign(long *to, long value)
{
    *to = value;
    done();
}

int main()
{
    std::vector<long> v(4, 1); // @made
    long *second = hide(&v[1]);
    v.push_back(2); // @moved
#ifdef FIXED
    second = &v[1];
#endif
    assign(hide(second), 0x7878787878787878);
    // WANT: use-after-free:nowhere
    // HEAP: use-after-free object=32 offset=8 bytes=8 text=xxxxxxxx api=new alloc:@made free:@moved call:nowhere
    return 0;
}
