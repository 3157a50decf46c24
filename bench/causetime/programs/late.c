/* The bad value is stored right before the end, and used some events later. */
#include "bench.h"

struct order {
	int id;
	struct item *first;
};

struct item {
	int price;
	struct item *next;
};

static struct order *orders[64];

static struct item *item(int price, struct item *next)
{
	struct item *x = malloc(sizeof(*x));

	x->price = price;
	x->next = next;
	return x;
}

static void close_order(struct order *o)
{
	if (o->id % 7 == 3)
		o->first = NULL;
}

static int total(const struct order *o)
{
	return o->first->price + o->first->next->price;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 1;
	int all = 0;

	for (long r = 0; r < rounds; r++)
		note(r, compute((uint64_t)r + 1));
	for (int i = 0; i < 64; i++) {
		orders[i] = malloc(sizeof(*orders[i]));
		orders[i]->id = i;
		orders[i]->first = item(i, item(2 * i, NULL));
		note(i, 0);
	}
	close_order(orders[10]);
	note(0, 0);
	for (int i = 0; i < 64; i++)
		all += total(orders[i]);
	printf("%d\n", all);
	return 0;
}
