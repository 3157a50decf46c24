// An exception passes a catch of another type and a cleanup, and is not caught.
#include <new>
#include <stdexcept>

static volatile int level = 3;
static int cleaned;

struct Cleanup {
    ~Cleanup() { cleaned++; }
};

__attribute__((noinline, noipa)) static int open_level(int n)
{
    Cleanup cleanup;
    if (n == 0)
        // WANT: cxx-terminate:@LINE+1
        throw std::out_of_range("level zero");
    return n + cleaned;
}

__attribute__((noinline, noipa)) static int guarded(int n)
{
    Cleanup cleanup;
    try {
        return open_level(n);
    } catch (const std::bad_alloc &) {
        return 0;
    }
}

int main()
{
#ifndef FIXED
    level = 0;
#endif
    return guarded(level) != 3;
}
