/* Runs out of address space, under a limit set from outside or by itself. A
 * heap has to say so with NULL and ENOMEM, and to serve again afterwards. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define PIECES 400000

static char *piece[PIECES];

static int exhaust(size_t size)
{
	int n = 0;

	errno = 0;
	for (; n < PIECES && (piece[n] = malloc(size)) != NULL; n++)
		memset(piece[n], n, size < 64 ? size : 64);
	if (n < PIECES && errno != ENOMEM)
		printf("errno %d\n", errno);
	printf("%zu: %s, %s\n", size, n < PIECES ? "exhausted" : "enough", n >= 10 ? "after some" : "at once");
	for (int i = 0; i < n; i++)
		free(piece[i]);
	return n;
}

int main(int argc, char **argv)
{
	struct rlimit limit;

	if (argc > 1) {
		limit.rlim_cur = limit.rlim_max = strtoul(argv[1], NULL, 0) << 20;
		if (setrlimit(RLIMIT_AS, &limit))
			return 2;
	}
	if (malloc((size_t)1 << 40) != NULL || errno != ENOMEM)
		puts("a terabyte?");
	for (int round = 0; round < 3; round++) {
		exhaust(1 << 20);
		exhaust(5000);
		exhaust(100000);
		exhaust(10000000);
	}
	char *p = malloc(100), *q = realloc(p, (size_t)1 << 40);

	if (q || errno != ENOMEM)
		puts("a terabyte again?");
	free(p);
	puts("still here");
	return 0;
}
