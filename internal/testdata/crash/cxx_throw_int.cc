// A number is thrown.
static volatile int code = 42;

__attribute__((noinline, noipa)) static int check(int n)
{
    if (n == 42)
        // WANT: cxx-terminate:@LINE+1
        throw n;
    return n;
}

__attribute__((noinline, noipa)) static int careful(int n)
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
