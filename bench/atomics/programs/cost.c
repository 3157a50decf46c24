/* ns an atomic addition takes: by one thread, and by two to one word. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static atomic_long word;

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *add(void *times)
{
	for (long i = 0; i < (long)times; i++)
		atomic_fetch_add(&word, 1);
	return NULL;
}

static double cost(int threads, long times)
{
	pthread_t list[2];
	double start = cpu_ns();

	for (int i = 0; i < threads; i++)
		pthread_create(&list[i], NULL, add, (void *)times);
	for (int i = 0; i < threads; i++)
		pthread_join(list[i], NULL);
	return (cpu_ns() - start) / (double)(threads * times);
}

int main(void)
{
	printf("alone %.2f\n", cost(1, 3000000));
	printf("shared %.2f\n", cost(2, 1000000));
	return 0;
}
