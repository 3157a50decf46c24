/* A table that gives up when a slot is taken: the step to the next one is 0. */
// ENDS: exit 6
// FAILS: 3 11
// PASSES: 3 4 | 1 2 7 | 5
// REFUSED: 3 3
#include <stdio.h>
#include <stdlib.h>

enum { slots = 8 };
static int table[slots];

__attribute__((noinline)) static int insert(int key)
{
	int at = key % slots;
	for (int tries = 0; tries < slots; tries++) {
		if (table[at] == 0) { // DIVERGES
			table[at] = key;
			return 1;
		}
		if (table[at] == key)
			return 0;
#ifdef FIXED
		at = (at + 1) % slots;
#else
		at = (at + slots) % slots;
#endif
	}
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!insert(atoi(argv[i]))) {
			fprintf(stderr, "%s cannot be inserted\n", argv[i]);
			exit(6);
		}
	printf("%d keys\n", argc - 1);
	return 0;
}
