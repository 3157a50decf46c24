/* last is kept when its session is freed; the memory becomes an entry, whose key touch() overwrites. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct session { char *name; int id; };
struct entry { char *key; int hits; };
static struct session *last;
static struct entry *table[60000];
static __attribute__((noinline)) void logout(struct session *s) { free(s); }
static __attribute__((noinline)) void touch(int id) { last->name = (char *)(long)id; } /* FLAW */
static __attribute__((noinline)) size_t total(int n) { size_t sum = 0; for (int i = 0; i < n; i++) if (table[i]) sum += strlen(table[i]->key); return sum; }
int main(int argc, char **argv)
{
	int n = 0;
	struct session *s = malloc(sizeof *s);
	s->name = "me";
	last = s;
	logout(s);
	for (; n < 60000; n++) {
		struct entry *e = malloc(sizeof *e);
		e->key = "k";
		e->hits = n;
		if ((void *)e == (void *)last) { table[n++] = e; break; }
		free(e);
	}
	touch(argc + 6);
	printf("%zu\n", total(n));
	return 0;
}
