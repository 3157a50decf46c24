/* gcc -g -O0, -O2: mremap moved the rows, and the pointer to the last one stays; the computation of its offset was blamed */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
struct table { long *rows; size_t cap, used; long *last; };
__attribute__((noinline)) static void grow(struct table *t)
{
    size_t old = t->cap * sizeof(long);
    void *hold = mmap((char *)t->rows + old, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *p = mremap(t->rows, old, old * 16, MREMAP_MAYMOVE);
    if (p == MAP_FAILED) abort();
    if (hold == p) abort();
    t->rows = p;
    t->cap *= 16;   /* FLAW: t->last still points to the old rows */
}
__attribute__((noinline)) static void add(struct table *t, long v)
{
    if (t->used == t->cap) grow(t);
    t->rows[t->used] = v;
    if (t->last) *t->last += 1;
    t->last = &t->rows[t->used++];
}
int main(void)
{
    struct table t = {0};
    t.cap = 512;
    t.rows = mmap(NULL, t.cap * sizeof(long), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < 2000; i++) add(&t, i);
    printf("%ld\n", t.rows[7]);
}
