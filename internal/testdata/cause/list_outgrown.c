// A scoreboard that looks once at a list that realloc has moved, and then finds its total
// wrong. The look is a use after free, but the total is wrong for another reason. To withhold
// the realloc is no experiment on the use: the program cannot run without its result.
// CAUSE kind=bad-value variable=total
// FAILS signal=SIGABRT says="Assertion"
// RUNS fail: reset
// RUNS pass: keep
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct list {
	int used, room, at[14];
};

static struct list *list, *before;
static int total = 9;
static volatile int seen;

__attribute__((noinline)) static void grow(void)
{
	before = list;
	list = realloc(list, 4096);
	list->room = 1000;
}

__attribute__((noinline)) static void reset(void)
{
#ifndef FIXED
	total = 3; // BUG
#endif
}

__attribute__((noinline)) static void check(void)
{
	struct list *l = list;

	grow();
	seen = l->used;
	assert(total == 9);
}

int main(int argc, char **argv)
{
	list = calloc(1, sizeof *list);
	if (argc > 1 && !strcmp(argv[1], "reset"))
		reset();
	check();
	puts("well");
	return 0;
}
