// A web server's scoreboard: the number of requests served is raised around the
// writing of the access log, and one of two is lost.
// CAUSE kind=atomicity-violation variable=board.served pattern=RWW
// FAILS signal=SIGABRT says="board has"
// RUNS fail: 5 10
// RUNS fail: 10 5
// RUNS pass: 5 120
// RUNS pass: 120 5
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	char state[4];
	unsigned long served;
	unsigned long bytes;
} board;

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int log_lines;

struct client {
	int slot, arrives; /* after so many milliseconds */
	size_t size;
};

static void pause_ms(int milliseconds)
{
	usleep((useconds_t)milliseconds * 1000);
}

/* The log is on a disk that is in use by others. */
static void log_access(const struct client *c, unsigned long number)
{
	char line[80];
	int n = snprintf(line, sizeof(line), "slot %d: %zu bytes, request %lu\n", c->slot, c->size, number);

	pthread_mutex_lock(&log_lock);
	write(1, line, (size_t)n);
	log_lines++;
	pthread_mutex_unlock(&log_lock);
	pause_ms(40);
}

static void finish_request(const struct client *c)
{
	unsigned long number;

#ifdef FIXED
	number = __atomic_add_fetch(&board.served, 1, __ATOMIC_RELAXED);
	log_access(c, number);
#else
	number = board.served + 1; // BUG 1
	log_access(c, number);
	board.served = number; // BUG 2 3
#endif
	__atomic_add_fetch(&board.bytes, c->size, __ATOMIC_RELAXED);
}

static void *serve(void *arg)
{
	const struct client *c = arg;

	board.state[c->slot] = 'R';
	pause_ms(c->arrives);
	board.state[c->slot] = 'W';
	finish_request(c);
	board.state[c->slot] = '_';
	return NULL;
}

int main(int argc, char **argv)
{
	struct client clients[] = { { 0, argc > 1 ? atoi(argv[1]) : 5, 512 }, { 1, argc > 2 ? atoi(argv[2]) : 120, 90 } };
	pthread_t threads[2];

	memset(board.state, '.', sizeof(board.state));
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, serve, &clients[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	if (board.served != (unsigned long)log_lines) {
		fprintf(stderr, "the log has %d requests, the board has %lu\n", log_lines, board.served);
		abort();
	}
	return 0;
}
