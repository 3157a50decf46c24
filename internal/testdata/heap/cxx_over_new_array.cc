// The histogram has as many buckets as its highest value, not one more.
#include "lib/hide.h"

#ifdef FIXED
static const int extra = 1;
#else
static const int extra = 0;
#endif

class Histogram {
public:
    explicit Histogram(int highest) : buckets(hide(new short[highest + extra]())) {} // @made
    ~Histogram()
    {
        // WANT: heap-overflow:@LINE+2
        // HEAP: heap-overflow object=64 offset=64 bytes=2 hex=0200 api=new[] alloc:@made<@declared call:@LINE+1
        delete[] buckets;
        done();
    }
    NOINLINE void set(int value, short times) { buckets[value] = times; }

private:
    short *buckets;
};

int main()
{
    Histogram h(32); // @declared
    h.set(4, 1);
    h.set(32, 2);
    return 0;
}
