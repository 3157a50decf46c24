// A display that looks whether there is a ticket, and shows it a moment later,
// while the desk takes it away and puts the next one there. Half of what the desk
// does is seen as well (WRW); but the display need not have looked again.
// CAUSE kind=atomicity-violation variable=ticket pattern=RWR missing=desk_lock
// FAILS signal=SIGABRT says="no ticket"
// RUNS fail: 5 25
// RUNS pass: 5 160
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct ticket {
	int number, shown;
};

static struct ticket first = { .number = 1 }, second = { .number = 2 };
static struct ticket *ticket = &first;
static pthread_mutex_t desk_lock = PTHREAD_MUTEX_INITIALIZER;

static void pause_ms(int milliseconds)
{
	usleep((useconds_t)milliseconds * 1000);
}

static void show(const char *text, size_t length)
{
	if (write(1, text, length) != (ssize_t)length)
		_exit(2);
	pause_ms(40); /* letter by letter */
}

/* Writes down the error, on a disk that takes its time. */
static void give_up(const char *why)
{
	fprintf(stderr, "%s\n", why);
	pause_ms(60);
	abort();
}

static void *display(void *arg)
{
	struct ticket *now;

	pause_ms(*(int *)arg);
#ifdef FIXED
	pthread_mutex_lock(&desk_lock);
#endif
	if (ticket) { // BUG 1
		show("now serving\n", 12);
		now = ticket; // BUG 3
		if (!now)
			give_up("no ticket");
		now->shown++;
	}
#ifdef FIXED
	pthread_mutex_unlock(&desk_lock);
#endif
	return NULL;
}

static void *desk(void *arg)
{
	pause_ms(*(int *)arg);
	pthread_mutex_lock(&desk_lock);
	ticket = NULL; // BUG 2
	pthread_mutex_unlock(&desk_lock);
	pause_ms(35); /* until the next one comes */
	pthread_mutex_lock(&desk_lock);
	ticket = &second;
	pthread_mutex_unlock(&desk_lock);
	return NULL;
}

int main(int argc, char **argv)
{
	int shows = argc > 1 ? atoi(argv[1]) : 5, takes = argc > 2 ? atoi(argv[2]) : 160;
	pthread_t threads[2];

	pthread_create(&threads[0], NULL, display, &shows);
	pthread_create(&threads[1], NULL, desk, &takes);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return first.shown + second.shown > 1;
}
