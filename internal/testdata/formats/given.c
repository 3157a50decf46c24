/* A format that the program makes takes the arguments that are passed; one of them is null. */
// ENDS: SIGSEGV
#include <stdio.h>
#include <string.h>

struct row {
	const char *volatile name;
	int value;
};

__attribute__((noinline)) static int show(const struct row *r, int width)
{
	char format[32], text[64];

	sprintf(format, "%%-%ds%%d %%n\n", width);
	format[strlen(format) - 3] = 0;
	snprintf(text, sizeof text, format, r->name, r->value);
	return text[0];
}

int main(int argc, char **argv)
{
	struct row rows[2] = { { argv[0], 1 }, { "", 2 } };

	rows[1].name = (const char *)(long)(argc < 5); /* CAUSE */
	return show(&rows[0], 8) + show(&rows[1], 10) == 3;
}
