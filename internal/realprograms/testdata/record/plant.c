/* Preloaded: the first process whose name is PLANT's fails at its end, when
 * everything that the program does at its exit is done. Its children do not. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pid_t planted;

__attribute__((constructor)) static void plant(void)
{
	const char *name = getenv("PLANT");
	if (name && strcmp(name, program_invocation_short_name) == 0) {
		unsetenv("PLANT");
		planted = getpid();
	}
}

__attribute__((destructor)) static void fail(void)
{
	if (planted && planted == getpid()) {
		signal(SIGABRT, SIG_DFL);
		abort();
	}
}
