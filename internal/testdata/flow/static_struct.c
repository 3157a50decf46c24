/* An element is stored past the end of an array of a struct with static storage, through a pointer. The last array, of a struct in a frame, may
 * be used as longer than it says. */
// ENDS: SIGSEGV
// WAY: outside in put
#include <stdio.h>

struct record {
	int key;
	int cells[5];
	int limit;
};
struct tail {
	int used;
	int cells[2];
};
struct both {
	struct tail tail;
	int more[4];
};

int place = 5;
char pages[64][1 << 20];
static struct record record;
static struct record *volatile current = &record; // so that no compiler puts the address into put

__attribute__((noinline)) static void put(struct record *r, int at, int value) { r->cells[at] = value; }

__attribute__((noinline)) static int add(struct tail *t, int at, int value)
{
	t->cells[at] = value;
	return t->cells[at] + ++t->used;
}

int main(int argc, char **argv)
{
	struct both both = {0};
	int sum = 0;

	(void)argv;
	record.limit = 7;
	for (int i = 0; i < 5; i++)
		sum += add(&both.tail, i, argc);
	put(current, place, 100000 * sum);
	__asm__ volatile("" : : : "memory"); // the limit is not known to be as it was
	printf("%d\n", pages[record.limit][0]);
	return 0;
}
