// Objects that were made before a traced part, and what functions store that the recording library has in libc's place.
//
// FLAGS: -O1
// STDIN: input
// ENDS: SIGABRT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
char line[16], block[8];
char *kept, *old, *moved, *gone;
int main(void)
{
	kept = malloc(24);
	old = malloc(24);
	gone = malloc(40);
	strcpy(old, "text to move");
	line[0] = 'x';
	if (getppid() == 0) // the traced part begins after this
		return 1;
	moved = realloc(old, 4096);
	free(gone);
	if (fread(block, 1, 2, stdin) != 2 || !fgets(line, sizeof line, stdin))
		return 1;
	abort();
}
