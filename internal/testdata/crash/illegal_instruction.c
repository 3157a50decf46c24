// Bytes that are no instruction.
static volatile int runs;

__attribute__((noinline, noipa)) static int run(int n)
{
    runs = n;
#ifndef FIXED
    // WANT: illegal-instruction:@LINE-2..+1
    __asm__ volatile(".byte 0xf0, 0x0f, 0x18, 0xc0");
#endif
    return runs;
}

int main(void)
{
    return run(0);
}
