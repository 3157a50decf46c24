/* gcc -g -O0, -O2: unmapped long before the use, so that no trace of all instructions has both; mmap was blamed */
#include <sys/mman.h>
#include <stdio.h>
struct index { unsigned *hits; size_t length; };
__attribute__((noinline)) static void close_index(struct index *x) { munmap(x->hits, x->length); }
__attribute__((noinline)) static unsigned work(unsigned n) { unsigned v = n; for (unsigned i = 0; i < n; i++) v = v * 31 + (v >> 3); return v; }
__attribute__((noinline)) static unsigned lookup(struct index *x, unsigned key) { return x->hits[key % (x->length / sizeof *x->hits)]; }
int main(void)
{
    struct index x = {0, 1 << 16};
    x.hits = mmap(NULL, x.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    x.hits[3] = 5;
    unsigned sum = work(1000);
    if (sum != 1) close_index(&x);
    sum += work(3000000);
    printf("%u\n", lookup(&x, sum));
}
