/* An object that is freed while a cache still has it. */
// ENDS: SIGSEGV
// FLAGS: -O0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct entry {
	char *text;
	long hits;
};

static struct entry *cache;

static void drop(struct entry *e)
{
	free(e);
}

int main(void)
{
	struct entry *e = malloc(sizeof(*e));

	e->text = "cached";
	e->hits = 0;
	cache = e;
	getppid();
	drop(e);
	cache->hits += (long)strlen(cache->text);
	printf("%ld\n", cache->hits);
	return 0;
}
