// A signal that is ignored does not break off a call, though a tracer sees it; one
// with a handler does. A sleep that such a signal breaks into writes the time that remains.
// ENDS: exit 0
// EVENTS: syscall 20
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { BYTES = 900000 };

static char bytes[BYTES];
static int semaphores, leave[2];
static pid_t child;

static void on_signal(int signal)
{
	(void)signal;
}

/* The main thread's child, so that it gets the signal of its end. */
static void begin_child(void)
{
	char byte;

	check(pipe(leave));
	child = check(fork());
	if (child)
		return;
	check(read(leave[0], &byte, 1));
	_exit(5);
}

static void end_child(void)
{
	check(write(leave[1], "!", 1));
	must(check(waitpid(child, NULL, 0)) == child);
	close(leave[0]);
	close(leave[1]);
}

/* Reads only when the writer is stuck, and has been sent a signal. */
static void *take(void *arg)
{
	static char taken[BYTES];
	int *ends = arg;
	struct pollfd room = { ends[1], POLLOUT, 0 };

	while (check(poll(&room, 1, 0)))
		usleep(1000);
	end_child();
	for (size_t got = 0; got < BYTES;) {
		long n = check(read(ends[0], taken + got, BYTES - got));

		if (!n)
			break;
		got += (size_t)n;
	}
	return NULL;
}

static long written(int *ends, int is_socket)
{
	pthread_t reader;
	long n;

	begin_child();
	pthread_create(&reader, NULL, take, ends);
	n = check(is_socket ? send(ends[1], bytes, BYTES, 0) : write(ends[1], bytes, BYTES));
	close(ends[1]);
	pthread_join(reader, NULL);
	close(ends[0]);
	return n;
}

static void *post(void *unused)
{
	struct sembuf up = { 0, 1, 0 };

	(void)unused;
	while (!check(semctl(semaphores, 0, GETNCNT)))
		usleep(1000);
	end_child();
	check(semop(semaphores, &up, 1));
	return NULL;
}

static void waits(void)
{
	struct sembuf down = { 0, -1, 0 };
	pthread_t other;

	semaphores = (int)check(semget(IPC_PRIVATE, 1, 0600));
	begin_child();
	pthread_create(&other, NULL, post, NULL);
	check(semop(semaphores, &down, 1));
	pthread_join(other, NULL);
	check(semctl(semaphores, 0, IPC_RMID));
}

/* The time left comes over the time to sleep, as in std::this_thread::sleep_for. */
static void *end_child_of_sleeper(void *unused)
{
	usleep(10000);
	end_child();
	return unused;
}

static void sleeps(void)
{
	for (int i = 0; i < 5; i++) {
		struct timespec t = { 0, 50000000 };
		pthread_t other;

		begin_child();
		pthread_create(&other, NULL, end_child_of_sleeper, NULL);
		check(nanosleep(&t, &t));
		fold_in(&t, sizeof(t));
		pthread_join(other, NULL);
	}
}

int main(void)
{
	int ends[2];

	check(pipe(ends));
	must(written(ends, 0) == BYTES);
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	must(written(ends, 1) == BYTES);
	waits();
	sleeps();
	signal(SIGCHLD, on_signal);
	check(pipe(ends));
	must(written(ends, 0) < BYTES);
	return 0;
}
