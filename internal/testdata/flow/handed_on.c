// Text runs past its array into a pointer, a byte at a time and its end by another instruction; another object is given that pointer, and
// used.
//
// FLAGS: -O0
// ARGS: a-name-of-15-by
// ENDS: SIGSEGV
// WAY: outside in set_name
#include <stdio.h>
#include <stdlib.h>
struct node { char name[8]; const char *label; };
struct view { int n; const char *label; };
static struct node node = { "", "label" };
__attribute__((noinline, noipa)) static void set_name(struct node *n, const char *s)
{
	int i;

	for (i = 0; s[i]; i++)
		n->name[i] = s[i];
	n->name[i] = 0;
}
__attribute__((noinline)) static struct view *open_view(struct node *n)
{
	struct view *v = malloc(sizeof *v);

	v->n = 1;
	v->label = n->label;
	return v;
}
int main(int argc, char **argv)
{
	struct node *n = &node;

#ifdef HEAP
	n = calloc(1, sizeof *n);
	n->label = "label";
#endif
	set_name(n, argv[argc - 1]);
	putchar(open_view(n)->label[0]);
	return 0;
}
