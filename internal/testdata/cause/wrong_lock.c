// The number of active connections is guarded by two locks: the acceptor's where
// one comes, the statistics' where one is dropped.
// CAUSE kind=atomicity-violation variable=server.active pattern=RWW
// FAILS signal=SIGABRT says="active connections"
// RUNS fail: 5 25
// RUNS pass: 5 150
// RUNS pass: 150 5
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
	pthread_mutex_t accept_lock, stats_lock;
	int active;
	int accepted, dropped;
} server = { .accept_lock = PTHREAD_MUTEX_INITIALIZER, .stats_lock = PTHREAD_MUTEX_INITIALIZER };

#ifdef FIXED
#define DROP_LOCK accept_lock
#else
#define DROP_LOCK stats_lock
#endif

static void announce(const char *what, int active)
{
	char line[60];
	int n = snprintf(line, sizeof(line), "%s, %d active\n", what, active);

	write(1, line, (size_t)n);
	usleep(50000);
}

static void connection_comes(void)
{
	int active;

	pthread_mutex_lock(&server.accept_lock);
	active = server.active + 1; // BUG 1
	announce("accepted", active);
	server.active = active; // BUG 3
	server.accepted++;
	pthread_mutex_unlock(&server.accept_lock);
}

static void connection_goes(void)
{
	pthread_mutex_lock(&server.DROP_LOCK);
	server.active--; // BUG 2
	server.dropped++;
	pthread_mutex_unlock(&server.DROP_LOCK);
	write(1, "dropped\n", 8);
}

static void *acceptor(void *arg)
{
	usleep((useconds_t) * (int *)arg * 1000);
	connection_comes();
	return NULL;
}

static void *reaper(void *arg)
{
	usleep((useconds_t) * (int *)arg * 1000);
	connection_goes();
	return NULL;
}

int main(int argc, char **argv)
{
	int comes = argc > 1 ? atoi(argv[1]) : 5, goes = argc > 2 ? atoi(argv[2]) : 150;
	pthread_t threads[2];

	for (int i = 0; i < 3; i++) {
		server.active++;
		server.accepted++;
	}
	pthread_create(&threads[0], NULL, acceptor, &comes);
	pthread_create(&threads[1], NULL, reaper, &goes);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	if (server.active != server.accepted - server.dropped) {
		fprintf(stderr, "%d active connections of %d that came and %d that went\n", server.active, server.accepted, server.dropped);
		abort();
	}
	return 0;
}
