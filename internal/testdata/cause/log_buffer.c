// A web server's buffered log, after Apache's bug 25520: a writer takes its place
// in the buffer under the lock and fills it outside, so a flush writes text
// that does not exist yet.
// CAUSE kind=atomicity-violation|order-violation variable=log.used,log.text[64]|log.used,log.text*|log.text* pattern="two variables|RW" missing=log.lock
// FAILS signal=SIGABRT says="of 2 lines"
// RUNS fail: 1 120 120
// RUNS pass: 1 10 140
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 4096, LINE = 64 };

static struct {
	pthread_mutex_t lock;
	size_t used;
	char text[SIZE];
} log = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct request {
	int arrives, lookup; /* milliseconds */
	const char *path;
};

static int written, lines;

static void pause_ms(int milliseconds)
{
	usleep((useconds_t)milliseconds * 1000);
}

/* The client's name, by a server that takes its time. */
static void look_up(const struct request *r, char *name, size_t size)
{
	pause_ms(r->lookup);
	snprintf(name, size, "client-%d.example", r->arrives);
}

static void log_request(const struct request *r)
{
	char line[LINE], name[24];
	size_t at;

	pthread_mutex_lock(&log.lock);
	at = log.used;
	log.used += LINE; // BUG 1
#ifdef FIXED
	look_up(r, name, sizeof(name));
	snprintf(line, sizeof(line), "%s GET %s", name, r->path);
	memcpy(log.text + at, line, LINE);
	pthread_mutex_unlock(&log.lock);
#else
	pthread_mutex_unlock(&log.lock);
	look_up(r, name, sizeof(name));
	snprintf(line, sizeof(line), "%s GET %s", name, r->path);
	memcpy(log.text + at, line, LINE); // BUG 3
#endif
}

static void flush_log(int last)
{
	pthread_mutex_lock(&log.lock);
	for (size_t at = 0; at < log.used; at += LINE) {
		const char *line = log.text + at;
		size_t length = strnlen(line, LINE); // BUG 2

		if (length)
			written += write(1, line, length) == (ssize_t)length;
		lines++;
	}
	log.used = 0;
	if (last && written != lines) {
		fprintf(stderr, "%d of %d lines were written\n", written, lines);
		abort();
	}
	pthread_mutex_unlock(&log.lock);
}

static void *serve(void *arg)
{
	const struct request *r = arg;

	pause_ms(r->arrives);
	log_request(r);
	return NULL;
}

int main(int argc, char **argv)
{
	int arrives = argc > 1 ? atoi(argv[1]) : 1, lookup = argc > 2 ? atoi(argv[2]) : 1;
	struct request requests[] = { { arrives, 1, "/index.html" }, { arrives + 60, lookup, "/status" } };
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, serve, &requests[i]);
	pause_ms(argc > 3 ? atoi(argv[3]) : 140);
	flush_log(0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	flush_log(1);
	return 0;
}
