// Bytes that are no instruction.
static volatile int wrong = 1;

__attribute__((noinline)) static int run(int n)
{
    if (wrong)
        // WANT: illegal-instruction:@LINE+1
        __asm__ volatile(".byte 0xf0, 0x0f, 0x18, 0xc0");
    return n;
}

int main(void)
{
#ifdef FIXED
    wrong = 0;
#endif
    return run(0);
}
