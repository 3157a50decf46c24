/* Two pointers are exchanged, of which one is to bytes: that one would fit any parameter. */
// ENDS: SIGSEGV
#pragma GCC diagnostic ignored "-Wattributes"
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	struct entry *next;
	const char *name;
	int value;
};

enum { SIZE = 8 };

static struct entry *variables[SIZE], *macros[SIZE];

__attribute__((noinline, noipa)) static unsigned hash(const char *name)
{
	unsigned h = 0;

	while (*name)
		h = (h << 1) + (unsigned char)*name++;
	return h % SIZE;
}

__attribute__((noinline, noipa)) static struct entry *lookup(const char *name, struct entry **table)
{
	struct entry *e = table[hash(name)];

	while (e && strcmp(name, e->name))
		e = e->next;
	return e;
}

__attribute__((noinline, noipa)) static void define(const char *name, int value, struct entry **table)
{
	struct entry *e = malloc(sizeof *e), **head = &table[hash(name)];

	*e = (struct entry){ *head, name, value };
	*head = e;
}

__attribute__((noinline, noipa)) static int variable(const char *name)
{
	struct entry *e = lookup(name, variables);

	return e ? e->value : 0;
}

__attribute__((noinline, noipa)) static int macro(const char *name)
{
	struct entry *e = lookup(macros, name); /* BUG */

	return e ? e->value : 0;
}

int main(int argc, char **argv)
{
	static char long_name[80];

	snprintf(long_name, sizeof long_name, "a_rather_long_name_of_a_macro_that_fills_some_words_%d_and_some_more_of_it", argc);
	define("width", 3, variables);
	define("height", 4, variables);
	define(long_name, 5, macros);
	printf("%d\n", variable("width") + variable("height"));
	printf("%d\n", macro(long_name));
	return 0;
}
