// A copy of a handle deletes what the original deletes too.
#include "lib/hide.h"

struct Texture {
    char pixels[128];
};

class Handle {
public:
    explicit Handle(Texture *t) : texture(t) {}
#ifdef FIXED
    Handle(const Handle &) : texture(nullptr) {}
#else
    Handle(const Handle &other) : texture(other.texture) {}
#endif
    ~Handle()
    {
        // WANT: double-free:@LINE+2
        // HEAP: double-free object=128 api=new alloc:@made free:@LINE+1 call:@LINE+1
        delete hide(texture);
        done();
    }

private:
    Texture *texture;
};

NOINLINE static int draw(Handle h)
{
    return hide(&h) == nullptr;
}

int main()
{
    Handle h(hide(new Texture)); // @made
    return draw(h);
}
