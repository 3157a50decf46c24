// A long loop without an event, and a failure in it: one of many arrivals at an instruction.
#include <stdlib.h>

struct cell {
	long value;
	struct cell *next;
};

volatile long sum;

int main(void)
{
	enum { cells = 300000 };
	struct cell *all = calloc(cells, sizeof *all);
	for (long i = 0; i < cells; i++) {
		all[i].value = i & 3;
		all[i].next = i + 1 < cells ? &all[i + 1] : (struct cell *)16;
	}
	for (struct cell *at = all; at; at = at->next)
		sum += at->value;
	return 0;
}
