// Two threads add to a total, in an order that the recording has; then the main thread fails.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

int total;
int *where;

__attribute__((noinline)) int add(int a, int b)
{
	int c = a + b;
	return c;
}

static void *work(void *p)
{
	for (int i = 0; i < 3; i++) {
		total = add(total, (int)(long)p);
		usleep(1000);
	}
	return 0;
}

int main(void)
{
	pthread_t t[2];
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], 0, work, (void *)(i + 1));
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	printf("total %d\n", total);
	for (int i = 0; i < 5; i++)
		total = add(total, i);
	where = total > 1000 ? &total : 0;
	*where = total;
	return 0;
}
