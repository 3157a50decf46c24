// Two consumers wait until there is a job, and look once. Both are woken, and the second
// finds the queue empty.
// CAUSE kind=atomicity-violation|order-violation variable=queue.*,queue.*|queue.* pattern="two variables|RWR|RWW|WR|WWR"
// FAILS signal=SIGSEGV says="fault at 0x0"
// RUNS fail: 20 20 100
// RUNS pass: 20 150 50
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
	struct job *next;
	int number;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct job *first;
	int size;
} queue = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0 };

static void say(const char *text)
{
	write(1, text, strlen(text));
}

static void put(int number)
{
	struct job *j = malloc(sizeof(*j));

	j->number = number;
	pthread_mutex_lock(&queue.lock);
	j->next = queue.first;
	queue.first = j;
	queue.size++;
	pthread_cond_broadcast(&queue.filled);
	pthread_mutex_unlock(&queue.lock);
	say("put\n");
}

static struct job *get(void)
{
	struct job *j;

	pthread_mutex_lock(&queue.lock);
#ifdef FIXED
	while (!queue.size)
#else
	if (!queue.size) // BUG 1
#endif
		pthread_cond_wait(&queue.filled, &queue.lock);
	j = queue.first; // BUG 4
	queue.first = j->next; // BUG 2
	queue.size--;          // BUG 3
	pthread_mutex_unlock(&queue.lock);
	return j;
}

static void *consume(void *arg)
{
	struct job *j;

	usleep(*(useconds_t *)arg * 1000);
	j = get();
	say(j->number > 1 ? "a later job\n" : "the first job\n");
	free(j);
	return NULL;
}

int main(int argc, char **argv)
{
	useconds_t delays[2] = { argc > 1 ? (useconds_t)atoi(argv[1]) : 20, argc > 2 ? (useconds_t)atoi(argv[2]) : 150 };
	useconds_t filled_after = argc > 3 ? (useconds_t)atoi(argv[3]) : 50;
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, consume, &delays[i]);
	usleep(filled_after * 1000);
	put(1);
	usleep(30000);
	put(2);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
