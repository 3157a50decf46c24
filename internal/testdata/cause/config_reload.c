// A proxy whose upstream is a host and a port. A reload replaces both, each with
// an atomic store; a connection reads one before and one after.
// CAUSE kind=atomicity-violation variable=upstream.host,upstream.port pattern="two variables"
// FAILS signal=SIGABRT says="no such upstream"
// RUNS fail: 5 25
// RUNS pass: 5 150
// RUNS pass: 150 5
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	const char *host;
	int port;
} upstream = { "old.example", 8080 };

static pthread_mutex_t upstream_lock = PTHREAD_MUTEX_INITIALIZER;
static int connections;

static void look_up(const char *host)
{
	char line[60];
	int n = snprintf(line, sizeof(line), "looking up %s\n", host);

	write(1, line, (size_t)n);
	usleep(60000);
}

static int connect_to(const char *host, int port)
{
	if (!strcmp(host, "old.example") ? port != 8080 : port != 9090) {
		fprintf(stderr, "%s:%d: no such upstream\n", host, port);
		abort();
	}
	return ++connections;
}

static int open_upstream(void)
{
	const char *host;
	int port;

#ifdef FIXED
	pthread_mutex_lock(&upstream_lock);
	host = upstream.host;
	port = upstream.port;
	pthread_mutex_unlock(&upstream_lock);
	look_up(host);
#else
	host = __atomic_load_n(&upstream.host, __ATOMIC_ACQUIRE); // BUG 1
	look_up(host);
	port = __atomic_load_n(&upstream.port, __ATOMIC_ACQUIRE); // BUG 3
#endif
	return connect_to(host, port);
}

static void reload(const char *host, int port)
{
#ifdef FIXED
	pthread_mutex_lock(&upstream_lock);
#endif
	__atomic_store_n(&upstream.host, host, __ATOMIC_RELEASE);
	__atomic_store_n(&upstream.port, port, __ATOMIC_RELEASE); // BUG 2
#ifdef FIXED
	pthread_mutex_unlock(&upstream_lock);
#endif
	write(1, "reloaded\n", 9);
}

static void *client(void *arg)
{
	usleep((useconds_t) * (int *)arg * 1000);
	open_upstream();
	return NULL;
}

static void *administrator(void *arg)
{
	usleep((useconds_t) * (int *)arg * 1000);
	reload("new.example", 9090);
	return NULL;
}

int main(int argc, char **argv)
{
	int connects = argc > 1 ? atoi(argv[1]) : 5, reloads = argc > 2 ? atoi(argv[2]) : 150;
	pthread_t threads[2];

	pthread_create(&threads[0], NULL, client, &connects);
	pthread_create(&threads[1], NULL, administrator, &reloads);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	open_upstream();
	return connections != 2;
}
