// A session that ends because the client leaves and because it was idle for too
// long: both see its buffer and free it.
// CAUSE kind=double-free|atomicity-violation|order-violation variable=session.buffer pattern=RW missing=session.lock
// FAILS signal=SIGABRT says="free"
// RUNS fail: 5 25
// RUNS pass: 5 150
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	pthread_mutex_t lock;
	char *buffer;
	int ended;
} session = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct reason {
	const char *text;
	int at, reply;
};

static void say_goodbye(const struct reason *r)
{
	char line[60];
	int n = snprintf(line, sizeof(line), "session ends: %s\n", r->text);

	write(1, line, (size_t)n);
	usleep((useconds_t)r->reply * 1000);
}

static void end_session(const struct reason *r)
{
	char *buffer;

#ifdef FIXED
	pthread_mutex_lock(&session.lock);
	buffer = session.buffer;
	session.buffer = NULL;
	session.ended++;
	pthread_mutex_unlock(&session.lock);
	if (buffer) {
		say_goodbye(r);
		free(buffer);
	}
#else
	buffer = session.buffer; // BUG 1
	if (buffer) {
		say_goodbye(r);
		free(buffer); // BUG
	}
	pthread_mutex_lock(&session.lock);
	session.buffer = NULL; // BUG 2
	session.ended++;
	pthread_mutex_unlock(&session.lock);
#endif
}

static void *end(void *arg)
{
	const struct reason *r = arg;

	usleep((useconds_t)r->at * 1000);
	end_session(r);
	return NULL;
}

int main(int argc, char **argv)
{
	struct reason reasons[] = { { "left", argc > 1 ? atoi(argv[1]) : 5, 50 }, { "idle", argc > 2 ? atoi(argv[2]) : 150, 70 } };
	pthread_t threads[2];

	session.buffer = malloc(512);
	memset(session.buffer, 's', 512);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, end, &reasons[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return session.ended != 2;
}
