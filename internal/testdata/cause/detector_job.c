// A list of jobs in heap memory: a worker takes the first one down in the log before it
// takes it off. A thread that finds the job begun already aborts, much later.
// CAUSE kind=atomicity-violation variable=list.first pattern=RWW|RWR
// FAILS signal=SIGABRT says="was begun before"
// RUNS fail: 5 20
// RUNS fail: 20 5
// RUNS pass: 5 130
// RUNS pass: 130 5
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum state { WAITING, RUNNING, DONE };

struct job {
	struct job *next;
	int number;
	int state;
	int result;
};

static struct {
	struct job *first;
	int done;
} list;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

static void note(const char *what, int number)
{
	char line[60];
	int n = snprintf(line, sizeof(line), "%s job %d\n", what, number);

	write(1, line, (size_t)n);
	usleep(40000);
}

static struct job *take(void)
{
	struct job *j;

#ifdef FIXED
	pthread_mutex_lock(&list_lock);
#endif
	j = list.first; // BUG 1
	if (j) {
		note("taking", j->number);
		list.first = j->next; // BUG 2 3
	}
#ifdef FIXED
	pthread_mutex_unlock(&list_lock);
#endif
	return j;
}

static void begin(struct job *j)
{
	int expected = WAITING;

	if (!__atomic_compare_exchange_n(&j->state, &expected, RUNNING, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		fprintf(stderr, "job %d was begun before\n", j->number);
		abort();
	}
}

static void *work(void *arg)
{
	struct job *j;

	usleep(*(useconds_t *)arg * 1000);
	j = take();
	if (!j)
		return NULL;
	begin(j);
	j->result = j->number * j->number;
	note("finished", j->number);
	__atomic_store_n(&j->state, DONE, __ATOMIC_RELEASE);
	__atomic_add_fetch(&list.done, 1, __ATOMIC_RELAXED);
	return NULL;
}

int main(int argc, char **argv)
{
	useconds_t delays[2] = { argc > 1 ? (useconds_t)atoi(argv[1]) : 5, argc > 2 ? (useconds_t)atoi(argv[2]) : 130 };
	pthread_t threads[2];

	for (int i = 4; i; i--) {
		struct job *j = calloc(1, sizeof(*j)); // OBJECT

		j->number = i;
		j->next = list.first;
		list.first = j;
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, &delays[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%d done\n", list.done);
	return 0;
}
