// A function that is called again and again between two events.
//
// ENDS: SIGABRT
#include <stdlib.h>

static volatile int done;

__attribute__((noinline)) void step(void) { done++; }

int main(void)
{
	for (int i = 0; i < 9; i++)
		step();
	abort();
}
