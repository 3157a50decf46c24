// A daemon that shuts down: main closes the output and says so afterwards, while
// the collector still looks at the messages.
// CAUSE kind=order-violation|atomicity-violation variable=output|stopping,output pattern="WR|two variables"
// FAILS signal=SIGABRT says="is not to be written"
// RUNS fail: 60 30
// RUNS pass: 10 130
// RUNS pass: 5 100
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int stopping;
static int output = -1;
static int samples;
static int sample_ms;

static void stop_timer(void)
{
	write(1, "timer stops\n", 12);
	usleep(50000);
}

static void shut_down(void)
{
#ifdef FIXED
	__atomic_store_n(&stopping, 1, __ATOMIC_SEQ_CST);
	stop_timer();
#else
	close(output);
	__atomic_store_n(&output, -1, __ATOMIC_SEQ_CST); // BUG 1
	stop_timer();
	__atomic_store_n(&stopping, 1, __ATOMIC_SEQ_CST);
#endif
}

static void write_sample(int number)
{
	int fd = __atomic_load_n(&output, __ATOMIC_SEQ_CST); // BUG 2
	char line[40];
	int n = snprintf(line, sizeof(line), "sample %d\n", number);

	if (write(fd, line, (size_t)n) != n) {
		fprintf(stderr, "sample %d is not to be written\n", number);
		abort();
	}
}

static void *collect(void *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		if (__atomic_load_n(&stopping, __ATOMIC_SEQ_CST))
			break;
		write_sample(i);
		samples++;
		usleep((useconds_t)sample_ms * 1000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	sample_ms = argc > 1 ? atoi(argv[1]) : 10;
	output = dup(1);
	pthread_create(&thread, NULL, collect, NULL);
	usleep((useconds_t)(argc > 2 ? atoi(argv[2]) : 130) * 1000);
	shut_down();
	pthread_join(thread, NULL);
	printf("%d samples\n", samples);
	return 0;
}
