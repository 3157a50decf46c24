// A state that cannot be, marked with a trap.
static volatile int kind = 9;

__attribute__((noinline, noipa)) static int size_of(int k)
{
    if (k == 1)
        return 4;
    if (k == 2)
        return 8;
    // WANT: trap:@LINE+1
    __builtin_trap();
}

int main(void)
{
#ifdef FIXED
    kind = 2;
#endif
    return size_of(kind) != 8;
}
