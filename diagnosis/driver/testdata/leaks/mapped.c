// LOST 3 1: large objects that malloc maps for themselves; memory of mmap has pointers.
#include "leaks.h"
#include <sys/mman.h>
void **volatile area;
__attribute__((noinline)) static void fill(void)
{
	area = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	area[100] = malloc(40);
	area[101] = malloc(400000);
	void *p;
	if (posix_memalign(&p, 4096, 600000))
		abort();
	area[102] = p;
	void **big = calloc(1, 300000);
	big[20000] = calloc(1, 50);
	lose(big);
	if (posix_memalign(&p, 64, 700000))
		abort();
	memset(p, 0, 64);
	lose(p);
	lose(calloc(1, 60));
	p = NULL, big = NULL;
}
int main(int argc, char **argv)
{
	(void)argv;
	fixed = argc > 1;
	fill();
	finish();
}
