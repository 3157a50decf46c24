// The average of nothing.
static volatile int total = 10, count;

__attribute__((noinline, noipa)) static int average(int sum, int n)
{
    // WANT: division-by-zero:@LINE+1
    return sum / n;
}

int main(void)
{
#ifdef FIXED
    count = 2;
#endif
    return average(total, count) != 5;
}
