// A service that starts its thread and notes which it is afterwards. The thread
// asks for itself before that.
// CAUSE kind=order-violation variable=service.thread pattern=RW
// FAILS signal=SIGABRT says="not the service's thread"
// RUNS fail: 5 50
// RUNS pass: 60 5
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	const char *name;
	pthread_t thread;
	int calls;
} service;

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static int loads_ms, reports_ms;

/* Calls that are not made by the service's own thread would have to be queued. */
static int on_own_thread(void)
{
#ifdef FIXED
	int own;

	pthread_mutex_lock(&start_lock);
	own = pthread_equal(service.thread, pthread_self());
	pthread_mutex_unlock(&start_lock);
	return own;
#else
	return pthread_equal(service.thread, pthread_self()); // BUG 1
#endif
}

static void call(const char *what)
{
	if (!on_own_thread()) {
		fprintf(stderr, "%s: not the service's thread\n", what);
		abort();
	}
	service.calls++;
}

static void *run(void *unused)
{
	(void)unused;
	usleep((useconds_t)loads_ms * 1000); /* its tables */
	call("open");
	call("close");
	return NULL;
}

static void report(const char *text)
{
	write(1, text, strlen(text));
	usleep((useconds_t)reports_ms * 1000);
}

static void start(const char *name)
{
	pthread_t thread;

	service.name = name;
#ifdef FIXED
	pthread_mutex_lock(&start_lock);
#endif
	pthread_create(&thread, NULL, run, NULL);
	report("service is started\n");
	service.thread = thread; // BUG 2
#ifdef FIXED
	pthread_mutex_unlock(&start_lock);
#endif
}

int main(int argc, char **argv)
{
	loads_ms = argc > 1 ? atoi(argv[1]) : 60;
	reports_ms = argc > 2 ? atoi(argv[2]) : 5;
	start("names");
	pthread_join(service.thread, NULL);
	return service.calls != 2;
}
