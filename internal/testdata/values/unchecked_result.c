/* What the C library could not do is not checked where it is asked for, nor where what came
 * of it is used: both places are told. */
// ENDS: SIGSEGV
// FLAGS: -O2
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item {
	char name[8];
	struct item *next;
};

static struct item *items;

__attribute__((noinline)) static struct item *new_item(const char *name)
{
	return calloc(strlen(name) > 6 ? (size_t)1 << 60 : 1, sizeof(struct item)); // WANT
}

__attribute__((noinline)) static void add(const char *name)
{
	struct item *i = new_item(name);

	i->next = items;
	items = i;
}

int main(void)
{
	add("first");
	add("the second");
	printf("%p\n", (void *)items);
	return 0;
}
