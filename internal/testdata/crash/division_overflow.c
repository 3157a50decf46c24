// The smallest integer divided by minus one.
static volatile int low = -2147483647 - 1, by = 1;

__attribute__((noinline, noipa)) static int scale(int n, int d)
{
    // WANT: division-overflow:@LINE+1
    return n / d;
}

int main(void)
{
#ifndef FIXED
    by = -1;
#endif
    return scale(low, by) != low;
}
