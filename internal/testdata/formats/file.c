/* A line of a file is the format of a message: it takes arguments that the call does not have. */
// ENDS: SIGSEGV
#include <stdio.h>
#include <string.h>

static char line[128];

__attribute__((noinline)) static void tell(FILE *to)
{
	char text[256];

	if (line[0] == '#')
		return;
	snprintf(text, sizeof text, line); /* BUG */
	fputs(text, to);
}

__attribute__((noinline)) static void next(FILE *from)
{
	if (!fgets(line, sizeof line, from))
		line[0] = '#';
}

int main(void)
{
	FILE *f = tmpfile();

	fputs("first\nsecond %s%s%s%s%s%s%n%n\n", f);
	rewind(f);
	for (int i = 0; i < 2; i++) {
		next(f);
		tell(stdout);
	}
	return 0;
}
