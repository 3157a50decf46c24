// Two functions call the one that fails, neither of them for certain, nor by which of its calls the one before.
// WANT: leaf first>* main
#define OWN __attribute__((noinline, noclone))
static volatile int counter;
static int *volatile nowhere;

OWN int leaf(int *p)
{
    int r = *p;
    __asm__ volatile("" ::: "memory");
    return r;
}
OWN int left(int *p) { counter += 1; return leaf(p); }
OWN int right(int *p) { counter += 2; return leaf(p); }
OWN int choose(int *p, int n)
{
    counter += 3;
    if (n > 1)
        return left(p);
    return right(p);
}
OWN int first(int *p, int n) { counter += n; return choose(p, n + 1); }

int main(int argc, char **argv)
{
    (void)argv;
    int r = first(nowhere, argc);
    __asm__ volatile("" ::: "memory");
    return r;
}
