// A loop of OpenMP: its runtime allocates what it keeps of the threads and of the loop.
// FLAGS: -O1 -fopenmp
// ENDS: exit 0
#include <stdlib.h>

static int *volatile item;
static int sum;

int main(void)
{
	item = malloc(sizeof *item);
	*item = 0;
#pragma omp parallel for num_threads(3) schedule(dynamic, 1)
	for (int i = 0; i < 12; i++)
#pragma omp atomic
		sum += i;
	return sum != 66;
}
