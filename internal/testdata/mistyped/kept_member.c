/* A constructor stores its arguments in an object; the size and the pointer are swapped, and the object is used when it has returned. */
// ENDS: SIGSEGV
#pragma GCC diagnostic ignored "-Wint-conversion"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct view {
	int kind;
	size_t size;
	unsigned char *bytes;
	struct view *next;
};

__attribute__((noinline)) static struct view *new_view(size_t size, unsigned char *bytes, struct view *next)
{
	struct view *v = calloc(1, sizeof *v);
	v->kind = 2;
	v->size = size;
	v->bytes = bytes;
	v->next = next;
	return v;
}

__attribute__((noinline)) static struct view *views(unsigned char *bytes, size_t size, int n)
{
	struct view *list = NULL;
	while (n-- > 0)
		list = new_view(bytes, size, list); /* BUG */
	return list;
}

__attribute__((noinline)) static unsigned first(const struct view *v)
{
	return v->bytes[0];
}

int main(int argc, char **argv)
{
	(void)argv;
	unsigned char bytes[64];
	memset(bytes, 7, sizeof bytes);
	struct view *list = views(bytes, (size_t)argc * 12, argc + 2);
	printf("%u\n", first(list));
	return 0;
}
