// Whether a number is free is looked at and set in two sections: two threads may take the same number.
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NUMBERS = 6 };
static unsigned char *bits;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, pool = PTHREAD_MUTEX_INITIALIZER;
static int total;

static unsigned char *place(int i)
{
	return bits + (uint32_t)i * 2654435761u % 60000;
}

static int take(int i)
{
	int free;
	pthread_mutex_lock(&pool);
	free = !(*place(i) & 4);
	pthread_mutex_unlock(&pool);
	if (!free)
		return 0;
	if (i == 3)
		usleep(300);
	pthread_mutex_lock(&pool);
	*place(i) |= 4; // BUG
	pthread_mutex_unlock(&pool);
	return 1;
}

static void *work(void *pace)
{
	for (int i = 0; i < NUMBERS; i++) {
		usleep((unsigned)(uintptr_t)pace);
		if (!take(i))
			continue;
		pthread_mutex_lock(&lock);
		total += i;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[2];
	bits = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 2; i++) {
		pthread_create(&t[i], NULL, work, (void *)(uintptr_t)(40 * (i + 1)));
		usleep(getpid() % 4 * 300);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	assert(total == 15);
	puts("good");
	return 0;
}
