/* Loops of OpenMP whose iterations the threads take from a shared counter, with a sum, a
 * critical section, tasks and barriers. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 20000

static int taken[COUNT]; /* by which thread */
static unsigned order;   /* of the critical sections */

static unsigned fibonacci(unsigned n)
{
	unsigned a, b;

	if (n < 12)
		return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
#pragma omp task shared(a)
	a = fibonacci(n - 1);
#pragma omp task shared(b)
	b = fibonacci(n - 2);
#pragma omp taskwait
	return a + b;
}

int main(void)
{
	unsigned long sum = 0;
	unsigned tasks = 0;

	omp_set_num_threads(4);
	for (int round = 0; round < 20; round++) {
#pragma omp parallel for schedule(dynamic, 7) reduction(+ : sum)
		for (int i = 0; i < COUNT; i++) {
			unsigned h = (unsigned)i;

			for (int k = 0; k < 50; k++)
				h = h * 1664525 + 1013904223;
			taken[i] = omp_get_thread_num();
			sum += h;
			if (i % 500 == 0) {
#pragma omp critical
				order = order * 31 + (unsigned)taken[i];
			}
		}
	}
#pragma omp parallel
#pragma omp single
	tasks = fibonacci(22);
	printf("%lu %u %u\n", sum, order, tasks);
	abort();
}
