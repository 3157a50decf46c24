/* A struct that begins with a short array is cleared as a whole: by memset of its size, or by
   an assignment that the compiler makes string or vector stores of. The null of its pointer is
   set by that, and it is no overflow of the array. */
#include <stdio.h>
#include <string.h>
struct node { char tag[8]; int n; struct node *next; long pad[6]; };
__attribute__((noinline)) static void clear(struct node *n) { memset(n, 0, sizeof *n); }
__attribute__((noinline)) static int count(struct node *n) { return n->n + n->next->n; }
int main(int argc, char **argv)
{
	struct node one, two = { "two", 2, 0, { 0 } };
	one.next = &two;
	one.n = 1;
	if (argc < 2)
		clear(&one);
	printf("%d\n", count(&one));
	return 0;
}
