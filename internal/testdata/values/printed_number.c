/* A number is printed as a text. At -O2 no memory of the program's has it: what snprintf
 * keeps of its arguments on its own stack is not what it was told to write. */
// ENDS: SIGSEGV
// FLAGS: -O2
#include <stdio.h>

struct record {
	const char *name;
	long count;
};

__attribute__((noinline)) static void show(char *out, size_t n, const struct record *r, const char *format)
{
	snprintf(out, n, format, r->name, r->count);
}

int main(int argc, char **argv)
{
	struct record r = { "apples", 4242 };
	char text[64];
	show(text, sizeof text, &r, argc > 1 ? argv[1] : "%s cost %s");
	puts(text);
	return 0;
}
