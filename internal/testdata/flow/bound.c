// A loop counts down, in a register, from a length that was read.
//
// FLAGS: -O1
// STDIN: 900000
// ENDS: SIGSEGV
// WAY: input by fgets in main
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static long sum(const int *of, long n)
{
	long s = 0;
	for (const int *p = of, *end = of + n; p != end; p++)
		s += *p;
	return s;
}
static int values[16];
int main(void)
{
	char line[32];
	if (!fgets(line, sizeof line, stdin))
		return 1;
	long n = atoi(line);
	printf("%ld\n", sum(values, n));
	return 0;
}
