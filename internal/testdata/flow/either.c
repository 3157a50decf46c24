// An index is the sum of two numbers of a like size. One of them was read from memory that had been freed.
//
// FLAGS: -O1
// ENDS: SIGSEGV
// WAY: freed by free in close_page
#include <stdio.h>
#include <stdlib.h>
struct page { long first, second; };
int table[8];
static volatile long base = 0x7172737475767778;
__attribute__((noinline)) static void close_page(struct page *p) { free(p); }
__attribute__((noinline)) static int of(const struct page *p, long first) { return table[first + p->second]; }
int main(int argc, char **argv)
{
	(void)argv;
	struct page *p = malloc(sizeof(*p));
	p->first = p->second = argc;
	close_page(p);
	printf("%d\n", of(p, base));
	return 0;
}
