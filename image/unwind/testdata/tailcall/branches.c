// A function calls one of two in turn, which both call another: only that one is certain.
// WANT: leaf last<* main
#define OWN __attribute__((noinline, noclone))
static volatile int counter;
static int *volatile nowhere;

OWN int leaf(int *p)
{
    int r = *p;
    __asm__ volatile("" ::: "memory");
    return r;
}
OWN int last(int *p) { counter += 5; return leaf(p); }
OWN int left(int *p) { counter += 1; return last(p); }
OWN int right(int *p) { counter += 2; return last(p); }
OWN int first(int *p, int n)
{
    if (n > 1)
        return left(p);
    return right(p);
}

int main(int argc, char **argv)
{
    (void)argv;
    int r = first(nowhere, argc);
    __asm__ volatile("" ::: "memory");
    return r;
}
