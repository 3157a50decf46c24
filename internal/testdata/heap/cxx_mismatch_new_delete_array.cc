// One long, deleted as an array of them.
#include "lib/hide.h"

int main()
{
    long *total = hide(new long(4)); // @made
#ifdef FIXED
    delete total;
#else
    // WANT: mismatched-free:@LINE+2
    // HEAP: mismatched-free object=8 api=new alloc:@made call:@LINE+1
    delete[] total;
#endif
    return 0;
}
