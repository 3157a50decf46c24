// A stock of goods in a hash table: goods that are not there have no entry, and
// no code looks whether there is one.
// CAUSE kind=bad-value variable="found|the result of lookup"
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: nails bolts screws
// RUNS pass: nails bolts nails
// COMPILERS: gcc clang
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 8 };

struct good {
	const char *name;
	long price;
	struct good *next;
};

static struct good *stock[BUCKETS];

static unsigned hash(const char *name)
{
	unsigned h = 5;

	while (*name)
		h = h * 31 + (unsigned char)*name++;
	return h % BUCKETS;
}

static void put(const char *name, long price)
{
	struct good *g = malloc(sizeof(*g));

	g->name = name;
	g->price = price;
	g->next = stock[hash(name)];
	stock[hash(name)] = g;
}

__attribute__((noinline)) static struct good *lookup(const char *name)
{
	struct good *g;

	for (g = stock[hash(name)]; g; g = g->next) // BUG 1
		if (strcmp(g->name, name) == 0)
			return g;
	return NULL; // BUG
}

int main(int argc, char **argv)
{
	long sum = 0;

	put("nails", 3);
	put("bolts", 5);
	put("nuts", 2);
	for (int i = 1; i < argc; i++) {
		struct good *found = lookup(argv[i]);

#ifdef FIXED
		if (!found)
			continue;
#endif
		sum += found->price;
	}
	printf("%ld\n", sum);
	return 0;
}
