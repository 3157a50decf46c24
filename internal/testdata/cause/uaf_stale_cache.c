// A phone book that remembers whom it found last. The entry is deleted, and the
// next call for the same name is counted in the freed memory.
// CAUSE kind=use-after-free
// FAILS signal=SIGABRT says="use-after-free"
// RUNS: book
// INPUT: add ann 17
// INPUT: add bob 23
// INPUT: call bob
// INPUT fail: delete bob
// INPUT fail: call bob
// INPUT pass: call bob
// INPUT pass: delete bob
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	struct entry *next;
	char name[16];
	long number, calls;
};

static struct entry *book, *last;

static void add(const char *name, long number)
{
	struct entry *e = calloc(1, sizeof(*e)); // OBJECT

	snprintf(e->name, sizeof(e->name), "%s", name);
	e->number = number;
	e->next = book;
	book = e;
}

static struct entry *find(const char *name)
{
	static char last_name[16];

	if (last && !strcmp(last_name, name))
		return last;
	for (struct entry *e = book; e; e = e->next)
		if (!strcmp(e->name, name)) {
			snprintf(last_name, sizeof(last_name), "%s", name);
			return last = e;
		}
	return NULL;
}

static void delete(const char *name)
{
	for (struct entry **p = &book; *p; p = &(*p)->next) {
		struct entry *e = *p;

		if (strcmp(e->name, name))
			continue;
		*p = e->next;
#ifdef FIXED
		if (last == e)
			last = NULL;
#endif
		free(e);
		return;
	}
}

static void call(const char *name)
{
	struct entry *e = find(name);

	if (e)
		e->calls++; // BUG
}

int main(void)
{
	char line[80], verb[16], name[16];
	long number;

	while (fgets(line, sizeof(line), stdin)) {
		int n = sscanf(line, "%15s %15s %ld", verb, name, &number);

		if (n == 3 && !strcmp(verb, "add"))
			add(name, number);
		else if (n == 2 && !strcmp(verb, "delete"))
			delete(name);
		else if (n == 2 && !strcmp(verb, "call"))
			call(name);
	}
	for (struct entry *e = book; e; e = e->next)
		printf("%s %ld: %ld calls\n", e->name, e->number, e->calls);
	return 0;
}
