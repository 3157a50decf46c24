/* A search reaches the end of a list whose last pointer nothing was stored to, and its caller does not look. */
// ENDS: SIGSEGV
// FLAGS: -O1
// WAY: tested in search
#include <stdio.h>

struct entry {
	struct entry *next;
	int key, value;
};

__attribute__((noinline)) static struct entry *search(struct entry *e, int key)
{
	while (e && e->key != key)
		e = e->next;
	return e;
}

struct entry entries[3];
struct entry *chosen;

__attribute__((noinline)) static void choose(struct entry *e) { chosen = e; }

int main(int argc, char **argv)
{
	(void)argv;
	entries[0].next = &entries[1];
	entries[0].key = argc + 3;
	entries[1].key = argc + 6;
	choose(search(entries, 9));
	printf("%d\n", chosen->value);
	return 0;
}
