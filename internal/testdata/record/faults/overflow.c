// The main thread's stack overflows, and there is no other for a handler.
//
// ENDS: SIGSEGV
// FLAGS: -O0
#include <stdlib.h>
#include <unistd.h>

static volatile unsigned long depth;

static unsigned long deeper(unsigned long n)
{
	volatile char room[4096];

	room[0] = (char)n;
	depth = n;
	return deeper(n + 1) + (unsigned long)room[0];
}

int main(void)
{
	(void)getppid();
	return (int)deeper(1);
}
