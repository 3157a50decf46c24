// The index of a table is text from the command line; the address is one of lea and an index register.
//
// FLAGS: -O2
// ARGS: 700000000
// ENDS: SIGSEGV
// WAY: returned by strtol in parse, through serve
#include <stdio.h>
#include <stdlib.h>
struct row { long count[3]; };
static struct row *rows;
__attribute__((noinline)) static int parse(const char *text)
{
	int n = strtol(text, NULL, 10);
	return n;
}
__attribute__((noinline)) static long serve(int i) { return rows[i].count[1]; }
int main(int argc, char **argv)
{
	rows = calloc(8, sizeof *rows);
	printf("%ld\n", serve(parse(argv[argc - 1])));
	return 0;
}
