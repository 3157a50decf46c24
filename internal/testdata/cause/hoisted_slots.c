// A table whose slots are made when there is a first entry; one way of filling it
// counts before it makes them. The loop's pointer is loaded once, before it.
// CAUSE kind=uninitialised-value|bad-value
// FAILS signal=SIGSEGV says="fault at 0x"
// RUNS fail: 5 0
// RUNS pass: 5 16
#include <stdio.h>
#include <stdlib.h>

struct slot {
	long weight, count;
};

struct table {
	int entries, room;
	struct slot *slots;
};

static struct table *made;
static volatile int fraction;

static void make(int entries, int room)
{
	struct table *t = malloc(sizeof(*t)); // OBJECT

	t->entries = entries;
	t->room = room;
	t->slots = NULL; // BUG
#ifdef FIXED
	if (entries > room)
		room = entries;
#endif
	if (room)
		t->slots = calloc((size_t)room, sizeof(*t->slots));
	made = t;
}

static long weigh(const struct table *t)
{
	long sum = 0;

	for (int i = 0; i < t->entries; i++)
		sum += t->slots[i].weight * (i + 1) + t->slots[i].count; // HOP 1
	return sum;
}

static long fill(struct table *t)
{
	for (int i = 0; i < t->entries; i++)
		if (fraction)
			t->slots[i].count = i;
	return weigh(t);
}

int main(int argc, char **argv)
{
	make(argc > 1 ? atoi(argv[1]) : 0, argc > 2 ? atoi(argv[2]) : 0);
	for (int round = 0; round < 3; round++)
		printf("%ld\n", fill(made));
	return 0;
}
