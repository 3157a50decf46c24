/* A search that finds nothing returns NULL. That is the pointer which ends the list, and its store is not to blame:
 * the code tested it. Compilers return such a pointer also where the program says NULL. */
// FLAGS: -O1
// ENDS: SIGSEGV
// WAY: undecided in find
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct entry {
	struct entry *next;
	char name[8];
	long *value;
};
static long three = 3;
static struct entry *push(struct entry *list, const char *name)
{
	struct entry *e = malloc(sizeof *e);
	if (!e)
		exit(1);
	e->next = list;
	e->value = &three;
	strcpy(e->name, name);
	return e;
}
__attribute__((noinline)) static struct entry *find(struct entry *list, const char *name)
{
	struct entry *e = list;
	while (e && strcmp(e->name, name) != 0)
		e = e->next;
	return e;
}
int main(int argc, char **argv)
{
	(void)argc;
	struct entry *list = NULL;
	list = push(list, "one");
	list = push(list, "two");
	printf("%ld\n", *find(list, argv[0])->value);
	return 0;
}
