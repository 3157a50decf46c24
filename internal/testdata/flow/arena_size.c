/* An arena hands out memory for the size of a pointer instead of that of an object, so the next object overlaps this one. */
// ENDS: SIGSEGV
// FLAGS: -O2
// WAY: reused in new_column
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct table {
	int kind;
	int columns;
	const char *message;
	const char *name;
};

struct column {
	int kind;
	int register_number;
	struct table *of;
};

static char *arena, *end;

static void *take(size_t size)
{
	void *p = arena;
	arena += (size + 15) & ~(size_t)15;
	return arena <= end ? p : NULL;
}

__attribute__((noinline)) static struct table *new_table(const char *name)
{
	struct table *t = take(sizeof t); // BUG: sizeof *t
	t->kind = 1;
	t->columns = 0;
	t->name = name;
	t->message = NULL;
	return t;
}

__attribute__((noinline)) static struct column *new_column(struct table *of, int number)
{
	struct column *c = take(sizeof *c);
	c->kind = 0x4141;
	c->register_number = number;
	c->of = of;
	return c;
}

__attribute__((noinline)) static char initial(const struct table *t)
{
	return t->name[0];
}

int main(int argc, char **argv)
{
	(void)argv;
	arena = malloc(4096);
	end = arena + 4096;
	struct table *t = new_table("numbers");
	struct column *c = new_column(t, 6 + argc);
	printf("%d\n", c->kind);
	printf("%c\n", initial(t));
	return 0;
}
