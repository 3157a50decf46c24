// Variables of all kinds, to be named.
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum state { IDLE, BUSY, DONE };

struct worker {
	enum state state;
	unsigned flags : 3, level : 5;
	union {
		long number;
		char text[16];
	};
	struct worker *next;
};

struct config {
	char name[12];
	struct worker workers[3];
};

static struct config cfg;
struct worker *head;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long guarded, bare;
int table[100];

static void *add(void *arg)
{
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&lock);
		guarded += (long)arg;
		pthread_mutex_unlock(&lock);
		bare++;
	}
	return NULL;
}

static struct worker *allocate(long number)
{
	struct worker *w = calloc(1, sizeof(*w)); // ALLOCATION

	w->number = number;
	return w;
}

int main(void)
{
	pthread_t thread;

	strcpy(cfg.name, "one");
	cfg.workers[1].state = BUSY;
	cfg.workers[1].level = 4;
	for (long i = 0; i < 4; i++) {
		struct worker *w = allocate(i);

		w->next = head;
		head = w;
	}
	for (int i = 0; i < 100; i++)
		table[i] = i;
	pthread_create(&thread, NULL, add, (void *)2);
	pthread_join(thread, NULL);
	add((void *)-3);
	cfg.workers[1].state = DONE;
	abort();
}
