/* Structs that begin alike are one list, and a pointer to void and an integer go through a union: each is one object. The name is cut wrongly. */
// ENDS: SIGSEGV
// FLAGS: -O1
// WAY: constant in main
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct node {
	struct node *next;
};

struct name {
	struct name *following;
	const char *text;
};

struct holder {
	void *what;
	int kind;
};

struct held {
	struct name *what;
	int kind;
};

__attribute__((noinline)) static void push(struct node **list, struct node *n)
{
	n->next = *list;
	*list = n;
}

__attribute__((noinline)) static const struct name *second(const struct name *n)
{
	return n->following;
}

__attribute__((noinline)) static void hold(struct holder *h, void *what)
{
	h->what = what;
	h->kind = 1;
}

__attribute__((noinline)) static const char *text(const struct held *h)
{
	return second(h->what)->text;
}

int main(void)
{
	struct node *list = (struct node *)0x1234560; // BUG: it should begin empty
	struct name *n = calloc(1, sizeof *n);
	push(&list, (struct node *)n);
	struct held *h = malloc(sizeof *h);
	hold((struct holder *)h, list);
	printf("%s\n", text(h));
	return 0;
}
