// Pipes between threads, and what waits for them.
// ENDS: SIGABRT
// EVENTS: syscall 100
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"

static int ends[2], answers[2];

/* Blocks in read until there is something, and answers in pieces. */
static void *echo(void *unused)
{
	char text[32];
	long n;

	(void)unused;
	while ((n = check(read(ends[0], text, sizeof(text)))) > 0) {
		struct iovec pieces[2] = { { text, 1 }, { text + 1, (size_t)n - 1 } };

		check(writev(answers[1], pieces, n > 1 ? 2 : 1));
	}
	check(close(answers[1]));
	return NULL;
}

static void talk(void)
{
	char text[32];
	fd_set set;
	struct timeval limit;
	struct pollfd p = { answers[0], POLLIN, 0 };

	for (int i = 0; i < 20; i++) {
		int n = snprintf(text, sizeof(text), "message %d", i), got = 0;

		check(write(ends[1], text, (size_t)n));
		if (i & 1) {
			must(check(poll(&p, 1, 10000)) == 1 && p.revents == POLLIN);
		} else {
			FD_ZERO(&set);
			FD_SET(answers[0], &set);
			limit = (struct timeval){ 10, 0 };
			must(check(select(answers[0] + 1, &set, NULL, NULL, &limit)) == 1);
			fold_in(&limit, sizeof(limit));
		}
		while (got < n)
			got += (int)check(read(answers[0], text + got, sizeof(text)));
		fold_in(text, (unsigned long)n);
	}
}

static void moved(void)
{
	int a[2], b[2];
	char text[8];
	struct iovec v = { "vectors", 7 };

	check(pipe(a));
	check(pipe2(b, O_NONBLOCK | O_CLOEXEC));
	must(read(b[0], text, 8) == -1 && errno == EAGAIN);
	check(write(a[1], "abcdef", 6));
	must(check(tee(a[0], b[1], 6, 0)) == 6);
	must(check(splice(a[0], NULL, b[1], NULL, 3, 0)) == 3);
	must(check(vmsplice(b[1], &v, 1, 0)) == 7);
	must(check(read(b[0], text, 6)) == 6 && !memcmp(text, "abcdef", 6));
	check(dup2(b[0], a[0]));
	must(check(read(a[0], text, 8)) == 8 && !memcmp(text, "abcvecto", 8));
	must(check(fcntl(a[0], F_GETFL)) & O_NONBLOCK);
	must(check(fcntl(a[1], F_DUPFD_CLOEXEC, 100)) >= 100);
}

int main(void)
{
	pthread_t t;
	char text[8];

	check(pipe(ends));
	check(pipe(answers));
	must(!pthread_create(&t, NULL, echo, NULL));
	talk();
	check(close(ends[1]));
	must(check(read(answers[0], text, 8)) == 0);
	must(!pthread_join(t, NULL));
	moved();
	abort();
}
