// A static table is torn down after main: the overrun is found in a destructor.
#include <cstring>

#include "lib/hide.h"

class Names {
public:
    Names() : text(hide(new char[16])) {} // @made
    ~Names()
    {
        // WANT: heap-overflow:@LINE+2
        // HEAP: heap-overflow object=16 offset=16 bytes=2 hex=6700 api=new[] alloc:@made call:@LINE+1
        delete[] text;
        done();
    }
    NOINLINE void set(const char *name) { std::strcpy(text, name); }

private:
    char *text;
};

static Names names;

int main()
{
#ifdef FIXED
    names.set("long enough");
#else
    names.set("a name too long g");
#endif
    return 0;
}
