// More than a thousand instructions write one variable, and few another.
// ENDS: SIGABRT
#include <stdlib.h>

static volatile long counter, other, wide[4];

#define THREE counter++; counter += 2; counter ^= 3;
#define THIRTY THREE THREE THREE THREE THREE THREE THREE THREE THREE THREE
#define MANY THIRTY THIRTY THIRTY THIRTY THIRTY THIRTY THIRTY THIRTY THIRTY THIRTY

static void write_it(void)
{
	MANY MANY
}

int main(void)
{
	other = wide[0] = 1;
	for (int i = 0; i < 3; i++)
		write_it();
	other = 2;
	abort();
}
