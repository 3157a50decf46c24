// A table lookup with an index out of all bounds.
static int table[4] = {1, 2, 3, 4};
static volatile long chosen = 2;

__attribute__((noinline, noipa)) static int lookup(const int *t, long i)
{
    // WANT: wild-pointer read:@LINE+1
    return t[i];
}

int main(void)
{
#ifndef FIXED
    chosen = 0x80000000000;
#endif
    return lookup(table, chosen) != 3;
}
