// A loop counts down, and no condition ends it: the count has no sign.
//
// FLAGS: -O0
// ENDS: SIGSEGV
// WAY: loop in shift
#include <stdio.h>
static int table[16];
__attribute__((noinline)) static void shift(unsigned n)
{
	while (n >= 0) {
		table[n] = table[n - 1];
		n--;
	}
}
int main(int argc, char **argv)
{
	(void)argv;
	shift(7 + argc);
	printf("%d\n", table[3]);
	return 0;
}
