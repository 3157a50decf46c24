/* Accesses a variable as often as it is told, a write each. */
#include <stdint.h>
#include <stdlib.h>

volatile uint64_t counter;

int main(int argc, char **argv)
{
	long times = argc > 1 ? atol(argv[1]) : 1000;

	for (long i = 0; i < times; i++)
		counter = (uint64_t)i + 1;
	return 0;
}
