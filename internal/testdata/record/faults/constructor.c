// A crash in a constructor, before main.
//
// ENDS: SIGSEGV
#include <stdio.h>
#include <stdlib.h>

static char *volatile nothing;

__attribute__((constructor)) static void early(void)
{
	char *p = malloc(100);

	snprintf(p, 100, "early");
	*nothing = *p;
}

int main(void)
{
	return 3;
}
