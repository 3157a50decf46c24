// Calls in tail position, which leave no frame at -O2.
static int *volatile cell;
static int real = 1;

__attribute__((noinline, noipa)) static int leaf(int *p)
{
    // WANT: null-pointer read:@LINE+1
    return *p + 1;
}

__attribute__((noinline, noipa)) static int second(int *p)
{
    return leaf(p);
}

__attribute__((noinline, noipa)) static int first(int *p)
{
    return second(p);
}

__attribute__((noinline, noipa)) static int start(void)
{
    return first(cell) * 2;
}

int main(void)
{
#ifdef FIXED
    cell = &real;
#endif
    return start() != 4;
}
