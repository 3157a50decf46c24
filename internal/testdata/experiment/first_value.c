/* A search that finds nothing gives a variable its first value, which no code looks
 * at. What that variable would have without it was left on the stack by another call:
 * the address of readable memory. */
// ENDS: SIGSEGV
// FLAGS: -O0
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct entry {
	const char *name;
	int value;
};

static struct entry entries[] = { { "width", 80 }, { "height", 24 } };

static struct entry *find(const char *name)
{
	for (size_t i = 0; i < 2; i++)
		if (!strcmp(entries[i].name, name))
			return &entries[i];
	return NULL;
}

static int sum(const char *a, const char *b)
{
	struct entry *x = find(a), *y = find(b);

	return x->value + y->value;
}

int main(void)
{
	printf("%d\n", sum("width", "height"));
	printf("%d\n", sum("depth", "width"));
	return 0;
}
