// A page that was reserved and never opened.
// KERNEL: gdb's core says that it may be read
#include <stddef.h>
#include <sys/mman.h>

__attribute__((noinline, noipa)) static void fill(char *p, char c)
{
    // WANT: protected-page write:@LINE+1
    p[100] = c;
}

int main(void)
{
    char *p = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#ifdef FIXED
    mprotect(p, 8192, PROT_READ | PROT_WRITE);
#endif
    fill(p, 'x');
    return 0;
}
