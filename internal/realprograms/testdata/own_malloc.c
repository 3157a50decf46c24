/* Has an allocator of its own, as old shells and some language runtimes do:
 * its malloc serves the whole process, and the agent must not judge its
 * pointers. posix_memalign and malloc_usable_size it does not define. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char pool[64 << 20] __attribute__((aligned(16)));
static size_t used;

void *malloc(size_t n)
{
	size_t *p = (size_t *)(pool + used);

	if (n > sizeof(pool) - used - 32) {
		errno = ENOMEM;
		return NULL;
	}
	used += (n + 31) & -16ul;
	*p = n;
	return (char *)p + 16;
}

void free(void *p) { (void)p; }

void *calloc(size_t n, size_t size) { return malloc(n * size); }

void *realloc(void *p, size_t n)
{
	char *q = malloc(n);

	if (p && q) {
		size_t old = *(size_t *)((char *)p - 16);

		memcpy(q, p, old < n ? old : n);
	}
	return q;
}

int main(void)
{
	char *line = NULL, *text;
	size_t size = 0;
	FILE *f = tmpfile();

	for (int i = 0; i < 1000; i++)
		fprintf(f, "line %d\n", i);
	rewind(f);
	while (getline(&line, &size, f) > 0)
		free(strdup(line));
	free(line);
	fclose(f);
	if (asprintf(&text, "%s %d", "text", 42) < 0)
		return 1;
	puts(text);
	free(text);
	return (char *)line < pool || (char *)line >= pool + sizeof(pool);
}
