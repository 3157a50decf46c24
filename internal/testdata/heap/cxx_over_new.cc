// A base is allocated, a derived object is built in it.
#include <new>

#include "lib/hide.h"

struct Shape {
    virtual ~Shape() {}
    long x = 1, y = 2;
};

struct Circle : Shape {
    long radius = 0x4343434343434343;
    long area() const { return radius * radius; }
};

#ifdef FIXED
using Room = Circle;
#else
using Room = Shape;
#endif

NOINLINE static Shape *make()
{
    void *room = hide(::operator new(sizeof(Room))); // @made
    return hide(static_cast<Shape *>(new (room) Circle));
}

int main()
{
    Shape *s = make();
    long x = s->x;
    s->~Shape();
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=24 offset=24 bytes=8 text=CCCCCCCC reaches api=new alloc:@made call:@LINE+1
    ::operator delete(s);
    return x != 1;
}
