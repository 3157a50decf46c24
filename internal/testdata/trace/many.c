// More accesses than a ring has room for.
// WATCH: counter 8
// LEAST: 200000
// ENDS: exit 0
#include <stdint.h>

volatile uint64_t counter;

int main(void)
{
	for (uint64_t i = 0; i < 200000; i++)
		counter = i + 1;
	return 0;
}
