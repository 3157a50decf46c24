// An observer is notified that was deleted: its table of functions is fill.
#include "lib/hide.h"

struct Observer {
    virtual int notify(int what) = 0;
};

struct Printer final : Observer {
    int last = 0;
    int notify(int what) override { return last = what; }
};

NOINLINE static int notify(Observer *o)
{
    // WANT: use-after-free read:@LINE+1
    int result = o->notify(3);
    done();
    return result;
}

int main()
{
    Printer *o = hide(new Printer); // @made
#ifdef FIXED
    int result = notify(o);
    delete o;
#else
    delete o; // @freed
    // HEAP: use-after-free object=16 api=new alloc:@made free:@freed
    int result = notify(hide(static_cast<Observer *>(o)));
#endif
    return result != 3;
}
