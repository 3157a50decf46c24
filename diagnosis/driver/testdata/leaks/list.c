// LOST 3 27: the heads of three lists are overwritten.
#include "leaks.h"
struct item { struct item *next; int key; char name[36]; };
struct item *volatile whole;
__attribute__((noinline)) static struct item *push(struct item *head, int key)
{
	struct item *x = calloc(1, sizeof *x);
	x->next = head, x->key = key;
	strcpy(x->name, "an item of the list");
	return x;
}
__attribute__((noinline)) static struct item *make(int n)
{
	struct item *head = NULL;
	for (int i = 0; i < n; i++)
		head = push(head, i);
	return head;
}
__attribute__((noinline)) static void drop(void)
{
	for (int i = 0; i < 3; i++)
		lose(make(10));
}
int main(int argc, char **argv)
{
	(void)argv;
	fixed = argc > 1;
	whole = make(50);
	drop();
	finish();
}
