// A spreadsheet that jumps out of the handler of a division's fault, to say that it gives
// up and to end with a status. An empty column has no cells to divide by.
// CAUSE kind=bad-value variable=column.cells|cells
// FAILS exit=2 says="caught signal 8"
// RUNS fail: clear
// RUNS pass: keep
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct {
	int sum, cells;
} column = { 40, 4 };

static sigjmp_buf top;

static void caught(int sig)
{
	siglongjmp(top, sig);
}

__attribute__((noinline)) static void clear_column(void)
{
	column.sum = 0;
#ifndef FIXED
	column.cells = 0; // BUG
#endif
}

__attribute__((noinline)) static int average(void)
{
	return column.sum / column.cells;
}

int main(int argc, char **argv)
{
	int sig;

	signal(SIGFPE, caught);
	sig = sigsetjmp(top, 1);
	if (sig) {
		fprintf(stderr, "caught signal %d, giving up\n", sig);
		return 2;
	}
	if (argc > 1 && !strcmp(argv[1], "clear"))
		clear_column();
	printf("%d\n", average());
	return 0;
}
