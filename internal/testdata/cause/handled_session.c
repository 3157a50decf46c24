// A server whose threads serve sessions, with a handler of its own for crashes: it says so
// on a stack of its own, and aborts. Whoever logs out has no account any more.
// CAUSE kind=bad-value variable=sessions[1].account|s->account
// FAILS signal=SIGABRT says="the server has crashed"
// RUNS fail: 1
// RUNS pass: 0
// COMPILERS: gcc clang
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct account {
	const char *name;
	long requests;
};

struct session {
	int number;
	struct account *account;
};

static struct account accounts[2] = { { "ann", 0 }, { "bob", 0 } };
static struct session sessions[2] = { { 0, &accounts[0] }, { 1, &accounts[1] } };
static int leaves;

static void crashed(int sig, siginfo_t *info, void *context)
{
	static const char text[] = "the server has crashed\n";

	(void)sig, (void)info, (void)context;
	if (write(2, text, sizeof(text) - 1) < 0)
		_exit(1);
	abort();
}

__attribute__((noinline)) static void log_out(struct session *s)
{
#ifndef FIXED
	s->account = NULL; // BUG
#endif
	printf("session %d has logged out\n", s->number);
}

__attribute__((noinline)) static void request(struct session *s)
{
	s->account->requests++;
}

static void *serve(void *arg)
{
	struct session *s = arg;
	stack_t apart = { .ss_sp = malloc(65536), .ss_size = 65536 };

	sigaltstack(&apart, NULL);
	request(s);
	if (s->number == leaves)
		log_out(s);
	request(s);
	return arg;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	pthread_t thread;

	leaves = argc > 1 && argv[1][0] == '1' ? 1 : 2;
	sigaction(SIGSEGV, &action, NULL);
	if (pthread_create(&thread, NULL, serve, &sessions[1]))
		return 3;
	pthread_join(thread, NULL);
	serve(&sessions[0]);
	return 0;
}
