// One thread that writes, allocates and fails.
//
// ENDS: SIGSEGV
// EVENTS: syscall 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *text;
static int *volatile nowhere;

int main(void)
{
	text = malloc(100);
	snprintf(text, 100, "a text at %p", (void *)text);
	puts(text);
	fflush(stdout);
	*nowhere = (int)strlen(text);
	return 0;
}
