// A callback pointer points at data.
static unsigned char blob[64] = {0xc3};
static void (*volatile callback)(void);

static void nothing(void) {}

__attribute__((noinline)) static int run(int n)
{
    // WANT: execute-of-data execute:@LINE+1
    callback();
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
