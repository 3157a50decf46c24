// Threads with points between events: locks, a handler that interrupts code and one that comes at a
// call, a library of its own, and at the end a long stretch of every thread. What the threads do
// depends on nothing that no event orders.
// FLAGS: -ldl
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 3
#define ROUNDS 40
#define LAST 1000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static long shared, unordered;
static atomic_long both, handled;
static struct {
	char text[24];
	short numbers[12];
} own[THREADS + 1];
static long (*plugin)(long);

static void handler(int signal)
{
	atomic_fetch_add(&handled, signal);
}

static void stretch(int n, int index)
{
	for (int i = 0; i < n; i++) {
		own[index].numbers[i % 12] += (short)i;
		atomic_store_explicit(&both, 3, memory_order_relaxed);
		unordered = 7; /* both are the same whoever is first */
	}
}

static void *thread(void *argument)
{
	int index = (int)(long)argument;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&mutex);
		shared += plugin(i);
		pthread_mutex_unlock(&mutex);
		stretch(i, index);
		memcpy(own[index].text, "0123456789abcdefghijklm", (size_t)(i % 24));
		if (i % 8 == index)
			raise(SIGUSR1);
	}
	pthread_barrier_wait(&barrier);
	stretch(LAST, index);
	pthread_mutex_lock(&mutex);
	pthread_cond_wait(&never, &mutex);
	return NULL;
}

int main(int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW);
	pthread_t t;

	(void)argc;
	if (!library || !(plugin = (long (*)(long))dlsym(library, "plugin")))
		exit(2);
	signal(SIGUSR1, handler);
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t, NULL, thread, (void *)i);
	pthread_barrier_wait(&barrier);
	stretch(LAST, THREADS);
	*(volatile char *)8 = 0;
	return 0;
}
