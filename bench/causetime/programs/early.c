/* The bad value is stored after a tenth of the work, and used at the end. */
#include "bench.h"

struct account {
	long number;
	long *balance;
};

static struct account accounts[16];

static void open_account(struct account *a, long number)
{
	a->number = number;
	a->balance = calloc(1, sizeof(*a->balance));
}

static void retire(struct account *a)
{
	free(a->balance);
	a->balance = NULL;
}

static long sum(void)
{
	long all = 0;

	for (int i = 0; i < 16; i++)
		all += *accounts[i].balance;
	return all;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 10;

	for (int i = 0; i < 16; i++)
		open_account(&accounts[i], i);
	for (long r = 0; r < rounds; r++) {
		if (r == rounds / 10)
			retire(&accounts[5]);
		note(r, compute((uint64_t)r + 1));
	}
	printf("%ld\n", sum());
	return 0;
}
