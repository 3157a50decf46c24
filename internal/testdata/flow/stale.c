// A pointer into an object that realloc moved.
//
// FLAGS: -O1
// ENDS: SIGSEGV
// WAY: freed by realloc in grow
#include <stdio.h>
#include <stdlib.h>
struct list { char **names; int n; };
__attribute__((noinline)) static void grow(struct list *l)
{
	l->n *= 4096;
	l->names = realloc(l->names, l->n * sizeof *l->names);
}
int main(void)
{
	struct list l = { calloc(4, sizeof(char *)), 4 };
	char **first = l.names;
	first[0] = "first";
	grow(&l);
	printf("%c\n", first[0][0]);
	return 0;
}
