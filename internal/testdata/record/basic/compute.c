// Most of a second, or more, without an event: each step needs the one before.
//
// ENDS: exit 5
// EVENTS: syscall 1
#include <unistd.h>

static volatile unsigned long last;

int main(void)
{
	unsigned long x = 1;

	for (unsigned long i = 0; i < 700000000; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	last = x;
	(void)getppid();
	return 5;
}
