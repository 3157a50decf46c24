/* One element too many is copied to an array in a struct: into the member after it. What it was copied from is good. */
// ENDS: SIGSEGV
// WAY: outside in take
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct record {
	int key;
	int cells[5];
	int limit;
	struct record *next;
};

int length = 5;
char pages[64][1 << 20];

__attribute__((noinline)) static void take(struct record *r, const int *from, int n) { memcpy(r->cells, from, (size_t)(n + 1) * sizeof(int)); }

int main(int argc, char **argv)
{
	struct record *r = calloc(1, sizeof(*r));
	int from[6];

	(void)argv;
	for (int i = 0; i < 6; i++)
		from[i] = 100000 * argc + i;
	r->limit = 7;
	take(r, from, length);
	printf("%d\n", pages[r->limit][0]);
	return 0;
}
