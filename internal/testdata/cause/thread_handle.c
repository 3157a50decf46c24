// A service that starts its thread and notes which it is afterwards. The thread
// asks for itself before that.
// CAUSE kind=order-violation variable=service.thread pattern=RW
// FAILS signal=SIGABRT says="not the service's"
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
	int calls, strangers;
} service;

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static int loads_ms, reports_ms;

/* Calls that are not made by the service's own thread would have to be queued. */
static void call(const char *what)
{
	pthread_t thread;

#ifdef FIXED
	pthread_mutex_lock(&start_lock);
#endif
	thread = __atomic_load_n(&service.thread, __ATOMIC_RELAXED); // BUG 1
#ifdef FIXED
	pthread_mutex_unlock(&start_lock);
#endif
	service.calls++;
	if (!pthread_equal(thread, pthread_self()))
		service.strangers++;
	write(1, what, strlen(what));
}

static void *run(void *unused)
{
	(void)unused;
	usleep((useconds_t)loads_ms * 1000); /* its tables */
	call("open\n");
	call("close\n");
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
	if (service.strangers) {
		fprintf(stderr, "%s: %d of %d calls were not the service's thread's\n", service.name, service.strangers, service.calls);
		abort();
	}
	return 0;
}
