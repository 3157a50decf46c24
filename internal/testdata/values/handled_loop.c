// A loop of a count without a sign continues below 0; a handler ends the process.
//
// FLAGS: -O0
// ENDS: exit 3
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static int table[16];
static void ends(int signal)
{
	(void)signal;
	_exit(3);
}
__attribute__((noinline)) static void shift(unsigned n)
{
	while (n >= 0) { table[n] = table[n - 1]; n--; } // WANT
}
int main(int argc, char **argv)
{
	(void)argv;
	signal(SIGSEGV, ends);
	shift(7 + argc);
	printf("%d\n", table[3]);
	return 0;
}
