/* Allocates and frees as many objects as it is told, of sizes around a mean,
 * damages a few, says which, and dies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long state = 88172645463325252ul;

static unsigned long number(unsigned long limit)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % limit;
}

/* Not known to the compiler, which would warn of this use. */
static void (*volatile poke)(char *at, int value);

static void store(char *at, int value)
{
	*at = (char)value;
}

int main(int argc, char **argv)
{
	unsigned long n = strtoul(argv[1], NULL, 10), mean = strtoul(argv[2], NULL, 10), i;
	char **objects = malloc(n * sizeof(*objects)), *over, *freed, *large;

	(void)argc;
	poke = store;
	for (i = 0; i < n; i++) {
		unsigned long size = number(20000) ? number(2 * mean) : 150000 + number(100000);

		objects[i] = malloc(size);
		memset(objects[i], 'a', size < 64 ? size : 64);
		if (number(4) == 0) {
			char **other = &objects[number(i + 1)];

			free(*other);
			*other = malloc(24);
		}
	}
	for (i = 0; i < n / 5; i++) {
		char **other = &objects[number(n)];

		free(*other);
		*other = NULL;
	}
	over = malloc(100);
	poke(over + 103, 'X');
	freed = malloc(200);
	free(freed);
	poke(freed + 16, 'Y');
	large = malloc(200001);
	poke(large - 2, 'Z');
	printf("%p %p %p\n", (void *)over, (void *)freed, (void *)large);
	fflush(stdout);
	abort();
}
