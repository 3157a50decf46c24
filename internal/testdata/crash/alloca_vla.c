// A frame whose size is known at run time only.
#include <alloca.h>
#include <string.h>

static int *volatile cell;
static int real = 3;

__attribute__((noinline, noipa)) static int use(char *a, int *b, int *p)
{
    a[0] = 1;
    b[0] = 2;
    // WANT: null-pointer read:@LINE+1
    return a[0] + b[0] + *p;
}

__attribute__((noinline, noipa)) static int work(int n, int *p)
{
    char *a = alloca(n * 16);
    int b[n];
    memset(a, 0, n * 16);
    return use(a, b, p) + b[0];
}

int main(void)
{
#ifdef FIXED
    cell = &real;
#endif
    volatile int n = 13;
    return work(n, cell) != 8;
}
