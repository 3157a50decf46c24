// Globals whose bytes have each kind of origin when the process dies.
//
// FLAGS: -O1
// STDIN: input
// ENDS: SIGABRT
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
char input[8];
long constant, copied, computed, counted;
char *fresh, *cleared, *moved, *gone;
int main(int argc, char **argv)
{
	(void)argv;
	if (read(0, input, 5) != 5)
		return 1;
	constant = 77;
	memcpy(&copied, &constant, sizeof copied);
	computed = argc * 5 + constant;
	for (int i = 0; i < 3; i++)
		__atomic_fetch_add(&counted, 1, __ATOMIC_RELAXED);
	fresh = malloc(24);
	cleared = calloc(2, 12);
	moved = malloc(24);
	strcpy(moved, "text to move");
	moved = realloc(moved, 4096);
	gone = malloc(24);
	gone[0] = 'x';
	free(gone);
	abort();
}
