// A process that makes one that makes another, and each fails in its own way.
//
// ENDS: SIGABRT
// EVENTS: fork 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *text;
static int *volatile nowhere;

static void tell(const char *who)
{
	sprintf(text, "%s %d of %d", who, getpid(), getppid());
	puts(text);
	fflush(stdout);
}

int main(void)
{
	int status;

	text = malloc(100);
	tell("parent");
	if (!fork()) {
		tell("child");
		if (!fork()) {
			tell("grandchild");
			*nowhere = 1;
		}
		wait(&status);
		exit(WTERMSIG(status));
	}
	wait(&status);
	tell("parent again");
	abort();
}
