// A desk that sells tickets, of which each source file has one defect: both are in one
// function, and about one variable.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef ASKED_UNDER_LOCK
#define ASKED_UNDER_LOCK 1
#endif
#ifndef COUNTED_UNDER_LOCK
#define COUNTED_UNDER_LOCK 1
#endif

static pthread_mutex_t desk_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t printer_lock = PTHREAD_MUTEX_INITIALIZER;
static long tickets = 10;
static int counting;

struct guest {
	int at, wants;
};

/* The printer takes its time. */
static void print(const char *what, long n)
{
	char line[60];
	int length = snprintf(line, sizeof(line), "%s %ld\n", what, n);

	pthread_mutex_lock(&printer_lock);
	write(1, line, (size_t)length);
	pthread_mutex_unlock(&printer_lock);
	usleep(40000);
}

static void *serve(void *arg)
{
	const struct guest *g = arg;

	usleep((useconds_t)g->at * 1000);
	if (counting) {
		if (COUNTED_UNDER_LOCK)
			pthread_mutex_lock(&desk_lock);
		long left = tickets;

		print("left", left);
		tickets = left - g->wants;
		if (COUNTED_UNDER_LOCK)
			pthread_mutex_unlock(&desk_lock);
		return NULL;
	}
	pthread_mutex_lock(&desk_lock);
	int enough = tickets >= g->wants;

	if (!ASKED_UNDER_LOCK)
		pthread_mutex_unlock(&desk_lock);
	print("enough", enough);
	if (!ASKED_UNDER_LOCK)
		pthread_mutex_lock(&desk_lock);
	if (enough)
		tickets -= g->wants;
	pthread_mutex_unlock(&desk_lock);
	return NULL;
}

int main(int argc, char **argv)
{
	counting = argc > 1 && argv[1][0] == 'c';
	int wants = counting ? 3 : 6;
	struct guest guests[] = { { argc > 2 ? atoi(argv[2]) : 5, wants }, { argc > 3 ? atoi(argv[3]) : 130, wants } };
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, serve, &guests[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	if (tickets != 4) {
		fprintf(stderr, "%ld tickets at the desk\n", tickets);
		abort();
	}
	return 0;
}
