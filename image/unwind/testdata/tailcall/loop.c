// Functions that call each other in turn: how often is not known.
// WANT: leaf odd* even<* main
#define OWN __attribute__((noinline, noclone))
static volatile int counter;
static int *volatile nowhere;

OWN int leaf(int *p)
{
    int r = *p;
    __asm__ volatile("" ::: "memory");
    return r;
}
OWN int even(int *p, int n);
OWN int odd(int *p, int n)
{
    counter += 1;
    if (n <= 1)
        return leaf(p);
    return even(p, n - 1);
}
OWN int even(int *p, int n)
{
    counter += 2;
    return odd(p, n - 1);
}

int main(int argc, char **argv)
{
    (void)argv;
    int r = even(nowhere, argc + 3);
    __asm__ volatile("" ::: "memory");
    return r;
}
