// An exception leaves a function that promised to throw none.
// VARIANTS: O0 O2 O2-nofp O2-fp-nopie O0-nopie
// (clang unwinds to the promise first, so the throw's frames are gone.)
#include <stdexcept>

static volatile int code = 42;

__attribute__((noinline, noipa)) static int check(int n)
{
    if (n == 42)
        // WANT: cxx-terminate:@LINE+1
        throw std::logic_error("forty-two");
    return n;
}

__attribute__((noinline, noipa)) static int careful(int n) noexcept
{
    return check(n) + 1;
}

int main()
{
#ifdef FIXED
    code = 1;
#endif
    return careful(code) != 2;
}
