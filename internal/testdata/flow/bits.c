// An index goes through a bit field; another bit field of the same word is set afterwards.
//
// FLAGS: -O0
// ENDS: SIGSEGV
// WAY: returned in moment
#include <stdio.h>
#include <time.h>
static struct { unsigned kind : 3, value : 28, last : 1; } flags;
int table[16];
__attribute__((noinline)) static unsigned moment(void) { return (unsigned)time(NULL) >> 5; }
int main(int argc, char **argv)
{
	(void)argv;
	flags.kind = argc + 4;
	flags.value = moment();
	flags.last = 1;
	printf("%d\n", table[(long)flags.value * 64]);
	return 0;
}
