// Of a tail call through a pointer nothing is known, nor of the functions around it.
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
static int (*volatile hook)(int *) = leaf;
OWN int middle(int *p) { counter += 1; return hook(p); }
OWN int first(int *p) { counter += 2; return middle(p); }

int main(void)
{
    int r = first(nowhere);
    __asm__ volatile("" ::: "memory");
    return r;
}
