/* Correct code that reads bits which were never set, and memory that was freed and allocated again: what decides is the input. */
// ENDS: exit 5
// DECIDED: nothing
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
	unsigned verbose : 1, level : 3, rest : 12;
};

__attribute__((noinline)) static struct options *read_options(const char *text)
{
	struct options *o = malloc(sizeof *o);
	o->level = (unsigned)atoi(text); // the other bits are as malloc left them
	return o;
}

__attribute__((noinline)) static int level(const struct options *o)
{
	return o->level;
}

int main(void)
{
	char *text = malloc(8);
	strcpy(text, "1");
	free(text);
	text = malloc(8);
	strcpy(text, "6");
	struct options *o = read_options(text);
	if (level(o) > 5) {
		fprintf(stderr, "there is no level %d\n", level(o));
		return 5;
	}
	return 0;
}
