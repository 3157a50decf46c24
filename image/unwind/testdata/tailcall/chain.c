// A chain of tail calls; one of the functions has a jump table.
// WANT: leaf third* second* first* main
// FIXED: leaf third second first main
#ifdef FIXED
#define CALL(f, ...) int r = f(__VA_ARGS__); __asm__ volatile("" ::: "memory"); return r
#else
#define CALL(f, ...) return f(__VA_ARGS__)
#endif
#define OWN __attribute__((noinline, noclone))

static volatile int table[8];
static int *volatile nowhere;

OWN int leaf(int *p, int n)
{
    int r = *p + n;
    __asm__ volatile("" ::: "memory");
    return r;
}

OWN int third(int *p, int n)
{
    table[n & 7] = n;
    CALL(leaf, p, n + 1);
}

OWN int second(int *p, int n)
{
    switch (n) {
    case 0: table[0] = 7; break;
    case 1: table[3] = 1; break;
    case 2: table[1] = 9; break;
    case 3: table[7] = 2; break;
    case 4: table[2] = 4; break;
    case 5: table[6] = 6; break;
    }
    for (int i = 0; i < 8; i++)
        table[i] ^= n; // too much for a compiler to repeat it, with the call, in each case
    CALL(third, p, n + 2);
}

OWN int first(int *p, int n) { CALL(second, p, n * 2); }

int main(int argc, char **argv)
{
    (void)argv;
    int r = first(nowhere, argc);
    __asm__ volatile("" ::: "memory");
    return r;
}
