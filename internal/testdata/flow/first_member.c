/* An object is used as one of a larger type: the first member that it does not have is read before the pointer that fails. */
// ENDS: SIGSEGV
// WAY: outside in reset
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct quick {
	int level;
	char table[60];
};

struct thorough {
	int level;
	char table[124];
	long limit;
	struct thorough *next;
};

__attribute__((noinline)) static void reset(struct thorough *t, int level)
{
	t->level = t->limit > 1000 ? 0 : level;
}

__attribute__((noinline)) static int last(const struct thorough *t)
{
	return t->next->level + t->level;
}

__attribute__((noinline)) static void *make(int level)
{
	return level < 3 ? calloc(1, sizeof(struct quick)) : calloc(1, sizeof(struct thorough));
}

int main(int argc, char **argv)
{
	struct thorough *volatile t = make(argc);

	(void)argv;
	reset(t, argc);
	printf("%d\n", last(t));
	return 0;
}
