// Options that are read from arguments into a local: the title has a value only if
// it was asked for, and otherwise what an earlier call left on the stack.
// CAUSE kind=uninitialised-value variable="o.title|options.title|*title"
// FAILS signal=SIGSEGV says="no address"
// RUNS fail: w80 h25
// RUNS pass: w80 h25 tReport
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
	int width, height;
	const char *title;
	int colour;
};

static unsigned banner_sum;
static size_t used;

/* Prints what the program is, from a text that is put together on the stack. */
__attribute__((noipa)) static void banner(const char *program)
{
	char text[600];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = "report 1.0 "[i % 11];
	for (size_t i = 0; i < sizeof(text); i++)
		banner_sum += (unsigned char)text[i] ^ (unsigned char)program[0];
}

__attribute__((noipa)) static void parse(struct options *o, int argc, char **argv)
{
#ifdef FIXED
	o->title = "untitled";
#endif
	for (int i = 1; i < argc; i++) {
		switch (argv[i][0]) {
		case 'w':
			o->width = atoi(argv[i] + 1);
			break;
		case 'h':
			o->height = atoi(argv[i] + 1);
			break;
		case 't':
			o->title = argv[i] + 1;
			break;
		}
	}
	o->colour = o->width > 40;
}

__attribute__((noipa)) static size_t line_length(const struct options *o)
{
	size_t n = 0;

	while (o->title[n]) // BUG
		n++;
	return n < (size_t)o->width ? n : (size_t)o->width;
}

__attribute__((noinline)) static void report(int argc, char **argv)
{
	struct options o;

	parse(&o, argc, argv);
	used = line_length(&o);
	printf("%zu of %d columns, %d lines\n", used, o.width, o.height);
}

/* A page has a ruler above it. */
__attribute__((noinline)) static void page(int argc, char **argv)
{
	volatile char ruler[80];

	for (size_t i = 0; i < sizeof(ruler); i++)
		ruler[i] = i % 10 ? '-' : '+';
	report(argc, argv);
	printf("%c\n", ruler[79]);
}

int main(int argc, char **argv)
{
	banner(argv[0]);
	page(argc, argv);
	return banner_sum == 0;
}
