// Failures by a bad pointer in an object of the heap, in a freed one whose address is still in use, and in a global variable.
#include <stdlib.h>
#include <string.h>

struct node { struct node *next; char *text; char name[40]; };
struct node *head;
struct node global;

__attribute__((noinline)) static struct node *make(const char *name)
{
	struct node *n = calloc(1, sizeof *n);
	n->text = strdup(name);
	strcpy(n->name, name);
	n->next = head;
	return head = n;
}

__attribute__((noinline)) static int sum(struct node *n)
{
	int s = 0;
	for (; n; n = n->next)
		s += n->text[0];
	return s;
}

__attribute__((noinline)) static int index_of(struct node *n, long index)
{
	return n->name[index];
}

int main(int argc, char **argv)
{
	make("one");
	struct node *second = make("two");
	make("three");
	if (argc > 1 && !strcmp(argv[1], "live"))
		memcpy(&second->text, "AAAAAAA", 7);
	if (argc > 1 && !strcmp(argv[1], "far"))
		return index_of(second, argc * 100000000000L);
	if (argc > 1 && !strcmp(argv[1], "freed")) {
		head->next = second->next;
		free(second);
		return index_of(second, argc * 100000000000L);
	}
	global.next = 0;
	if (argc > 1 && !strcmp(argv[1], "global"))
		memcpy(&global.text, "AAAAAAA", 7);
	else
		global.text = "fine";
	return sum(head) + sum(&global);
}
