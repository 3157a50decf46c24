// One of the functions that may be on the way has no description of its calls.
// WANT: leaf main
#define OWN __attribute__((noinline, noclone))
static volatile int counter;
static int *volatile nowhere;

OWN int leaf(int *p)
{
    int r = *p;
    __asm__ volatile("" ::: "memory");
    return r;
}
static int (*volatile keep)(int *) = leaf;
int unknown(int *p);
__asm__(".text\n.type unknown, @function\nunknown:\n\tjmp *keep(%rip)\n.size unknown, .-unknown\n");
OWN int first(int *p, int n)
{
    counter += n;
    if (n > 3)
        return unknown(p);
    return leaf(p);
}

int main(int argc, char **argv)
{
    (void)argv;
    int r = first(nowhere, argc);
    __asm__ volatile("" ::: "memory");
    return keep == 0 ? 0 : r;
}
