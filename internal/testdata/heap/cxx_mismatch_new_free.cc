// A C library's habit: what C++ made with new goes to free.
#include <cstdlib>

#include "lib/hide.h"

struct Point {
    double x, y, z;
};

int main()
{
    Point *p = hide(new Point()); // @made
#ifdef FIXED
    delete p;
#else
    // WANT: mismatched-free:@LINE+2
    // HEAP: mismatched-free object=24 api=new alloc:@made call:@LINE+1
    std::free(p);
#endif
    return 0;
}
