/* An entry that nothing was stored to is handed on. */
// ENDS: SIGSEGV
// WAY: zeroed in last
#include <stdio.h>
#include <stdlib.h>

struct list {
	long used;
	const char *names[8];
};

__attribute__((noinline)) static void fill(struct list *l)
{
	for (l->used = 0; l->used < 3; l->used++)
		l->names[l->used] = "name";
	l->used++;
}

__attribute__((noinline)) static const char *last(const struct list *l)
{
	return l->names[l->used - 1];
}

static const char *chosen;

int main(void)
{
	struct list *l = calloc(1, sizeof *l);

	fill(l);
	chosen = last(l);
	printf("%c\n", chosen[0]);
	return 0;
}
