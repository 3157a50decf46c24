// An array's buffer is deleted as a single object.
#include "lib/hide.h"

class Buffer {
public:
    explicit Buffer(int n) : bytes(hide(new char[n])) {} // @made
    ~Buffer()
    {
#ifdef FIXED
        delete[] bytes;
#else
        // WANT: mismatched-free:@LINE+2
        // HEAP: mismatched-free object=300 api=new[] alloc:@made<@declared call:@LINE+1
        delete bytes;
#endif
        done();
    }

private:
    char *bytes;
};

int main()
{
    Buffer b(300); // @declared
    return hide(&b) == nullptr;
}
