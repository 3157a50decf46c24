// A thread computes for long without an event, and comes to one place again and again.
// FLAGS: -O1
// ENDS: SIGABRT
#include <stdlib.h>
#include <unistd.h>

#define TURNS 100000

volatile unsigned count;

__attribute__((noinline)) void arrive(void)
{
	__asm__ volatile("" : : : "memory");
}

int main(void)
{
	getppid();
	for (unsigned i = 0; i < TURNS; i++) {
		count++;
		arrive();
	}
	getppid();
	abort();
}
