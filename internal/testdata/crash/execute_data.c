// A callback pointer points at data.
static unsigned char blob[64] = {0xc3};
static void (*volatile callback)(void);

static void nothing(void) {}
static volatile int runs;

__attribute__((noinline, noipa)) static int run(int n)
{
    // WANT: execute-of-data execute:@LINE+1
    callback();
    runs++;
    return n + 1;
}

int main(void)
{
#ifdef FIXED
    callback = nothing;
#else
    callback = (void (*)(void))blob;
#endif
    return run(1) != 2;
}
