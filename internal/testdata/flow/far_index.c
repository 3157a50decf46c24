// Millions of instructions, without an event, are between the text that becomes an index and its use.
//
// FLAGS: -O1
// ARGS: 700000000
// ENDS: SIGSEGV
// WAY: returned by strtol in parse, through serve
#include <stdio.h>
#include <stdlib.h>
struct row { long count[3]; };
static struct row *rows;
static volatile unsigned sum = 1;
__attribute__((noinline)) static int parse(const char *text)
{
	int n = strtol(text, NULL, 10);
	return n;
}
__attribute__((noinline)) static void compute(unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		sum = sum * 1664525 + (sum >> 7) + i;
}
__attribute__((noinline)) static long serve(int i) { return rows[i].count[1]; }
int main(int argc, char **argv)
{
	rows = calloc(8, sizeof *rows);
	int n = parse(argv[argc - 1]);
	compute(250000);
	printf("%ld\n", serve(n));
	return 0;
}
