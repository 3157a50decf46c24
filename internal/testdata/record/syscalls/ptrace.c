// Processes that the program traces itself: a child that asks for it, and one that a
// sibling seizes. The recorder detaches from both, and keeps what ptrace brought.
// ENDS: SIGABRT
// EVENTS: fork 3
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static long word = 1;

static void *sleeps(void *unused)
{
	for (;;)
		usleep(1000);
	return unused;
}

static void traced_child(void)
{
	struct user_regs_struct registers;
	siginfo_t info;
	int status;
	pid_t pid = check(fork());

	if (!pid) {
		word = getpid();
		check(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
		raise(SIGSTOP);
		_exit(5);
	}
	must(check(waitpid(pid, &status, 0)) == pid && WIFSTOPPED(status));
	errno = 0;
	must(ptrace(PTRACE_PEEKDATA, pid, &word, NULL) == pid && !errno);
	check(ptrace(PTRACE_GETREGS, pid, NULL, &registers));
	fold_in(&registers, sizeof(registers));
	check(ptrace(PTRACE_GETSIGINFO, pid, NULL, &info));
	must(info.si_signo == SIGSTOP);
	check(ptrace(PTRACE_CONT, pid, NULL, NULL));
	must(check(waitpid(pid, &status, 0)) == pid && WEXITSTATUS(status) == 5);
}

static int sibling(pid_t victim)
{
	unsigned char registers[4096];
	struct iovec set = { registers, sizeof(registers) };
	int status;

	check(ptrace(PTRACE_SEIZE, victim, NULL, NULL));
	check(ptrace(PTRACE_INTERRUPT, victim, NULL, NULL));
	must(check(waitpid(victim, &status, __WALL)) == victim && WIFSTOPPED(status));
	check(ptrace(PTRACE_GETREGSET, victim, (void *)1, &set)); /* NT_PRSTATUS */
	must(set.iov_len == sizeof(struct user_regs_struct));
	fold_in(registers, set.iov_len);
	errno = 0;
	must(ptrace(PTRACE_PEEKDATA, victim, &word, NULL) == 2 && !errno);
	check(ptrace(PTRACE_DETACH, victim, NULL, NULL));
	return 6;
}

static void seized(void)
{
	struct iovec here = { &word, sizeof(word) }, there = here;
	int ends[2], status;
	pthread_t thread;
	char byte;
	pid_t victim, tracer;

	check(pipe(ends));
	victim = check(fork());
	if (!victim) {
		word = 2;
		must(!pthread_create(&thread, NULL, sleeps, NULL));
		check(write(ends[1], "", 1));
		sleeps(NULL);
	}
	check(read(ends[0], &byte, 1));
	tracer = check(fork());
	if (!tracer)
		_exit(sibling(victim));
	must(check(waitpid(tracer, &status, 0)) == tracer && WEXITSTATUS(status) == 6);
	check(process_vm_readv(victim, &here, 1, &there, 1, 0));
	must(word == 2);
	check(kill(victim, SIGKILL));
	must(check(waitpid(victim, &status, 0)) == victim && WTERMSIG(status) == SIGKILL);
}

int main(void)
{
	/* The recorder is this process's parent. */
	must(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == -1 && errno == EPERM);
	traced_child();
	seized();
	printf("%lx\n", fold);
	fflush(stdout);
	abort();
}
