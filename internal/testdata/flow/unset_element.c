// An element of an array that was never given a value is read, because its index is wrong: the elements that are meant have values.
// The argument chooses the case: "state", a state of a table, which decides that the program gives up; "record", a pointer in an
// array of structs; "local", an index of an array in a frame; "table", a pointer in a static array, and "zeroed", one in memory of calloc.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct record {
	long id;
	const char *name;
};

int *state_of, *next_of;
struct record *records;
static int count;

__attribute__((noinline)) static void add(int state, int next)
{
	state_of[count] = state;
	next_of[count] = next;
	count++;
}

__attribute__((noinline)) static int walk(int at)
{
	switch (state_of[at]) { /* READ state */
	case 1:
		return at;
	case 2:
		return walk(next_of[at] + 40); /* BUG state */
	}
	fprintf(stderr, "unknown state\n");
	exit(3);
}

__attribute__((noinline)) static int chosen(const char *text)
{
	return atoi(text) * 5; /* BUG record */
}

__attribute__((noinline)) static long length(int at)
{
	return (long)strlen(records[at].name); /* READ record */
}

__attribute__((noinline)) static unsigned place(unsigned key)
{
	return key % 64 + 8; /* BUG local */
}

__attribute__((noinline)) static int last(const int *values, unsigned at)
{
	if (values[at] != 7) { /* READ local */
		fprintf(stderr, "no last value\n");
		exit(4);
	}
	return values[at];
}

__attribute__((noinline)) static int locals(unsigned n)
{
	int values[128];

	for (unsigned i = 0; i < n; i++)
		values[i] = 7;
	return last(values, place(n));
}

struct entry {
	int (*run)(int);
	int key;
};

static struct entry table[100];
static struct entry *zeroed;

__attribute__((noinline)) static int twice(int n) { return 2 * n; }

__attribute__((noinline)) static int slot(int key)
{
	return key / 2 + 33; /* BUG table zeroed */
}

__attribute__((noinline)) static int call(const struct entry *from, int at)
{
	return from[at].run(at) + 1; /* READ zeroed */
}

__attribute__((noinline)) static int call_static(int at)
{
	return table[at].run(at) + 1; /* READ table */
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "state";

	state_of = malloc(64 * sizeof *state_of);
	next_of = malloc(64 * sizeof *next_of);
	records = malloc(64 * sizeof *records);
	add(2, 1);
	add(2, 2);
	add(1, 0);
	for (long i = 0; i < 20; i++)
		records[i] = (struct record){ i, "a name" };
	zeroed = calloc(100, sizeof *zeroed);
	for (int i = 0; i < 40; i++)
		zeroed[i] = table[i] = (struct entry){ twice, i };
	if (!strcmp(what, "state"))
		printf("%d\n", walk(0));
	else if (!strcmp(what, "record"))
		printf("%ld\n", length(chosen("6")));
	else if (!strcmp(what, "table"))
		printf("%d\n", call_static(slot(argc + 20)));
	else if (!strcmp(what, "zeroed"))
		printf("%d\n", call(zeroed, slot(argc + 20)));
	else
		printf("%d\n", locals((unsigned)argc + 58)); /* argc is 2 */
	return 0;
}
