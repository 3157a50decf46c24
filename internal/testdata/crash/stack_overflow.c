// A recursion without an end, on the main stack.
#ifdef FIXED
#define DEPTH 10
#else
#define DEPTH 100000000
#endif

static volatile int sum;

// WANT: stack-overflow write:@LINE+1..+7
__attribute__((noinline, noipa)) static int descend(int n)
{
    volatile char room[64];
    room[0] = (char)n;
    if (n < DEPTH) sum += descend(n + 1);
    return sum + room[0];
}

int main(void)
{
    descend(0);
    return 0;
}
