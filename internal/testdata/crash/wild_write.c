// A pointer that was never valid, in the middle of nowhere.
static long *volatile place;
static long cell;

__attribute__((noinline, noipa)) static void store(long v)
{
    // WANT: wild-pointer write:@LINE+1
    *place = v;
}

int main(void)
{
#ifdef FIXED
    place = &cell;
#else
    place = (long *)0x123456789000;
#endif
    store(1);
    return 0;
}
