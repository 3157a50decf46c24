// A loop counts past a table, up to a constant.
//
// FLAGS: -O0
// ENDS: SIGSEGV
// WAY: loop in fill
#include <stdio.h>
static int table[16];
__attribute__((noinline)) static void fill(int with)
{
	for (long i = 0; i <= 16000000; i++)
		table[i] = with;
}
int main(int argc, char **argv)
{
	(void)argv;
	fill(argc);
	printf("%d\n", table[3]);
	return 0;
}
