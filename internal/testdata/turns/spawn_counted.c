// A thread starts programs, each by vfork, and maps a file, while another one counts in a variable: in a hunt, and where threads take
// turns, the places that it counts at are points, whose numbers of arrivals the engine has in memory of its own.
// ENDS: exit 0
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

static volatile long count;
static atomic_int ended;

static void *counts(void *unused)
{
	while (!ended)
		for (int i = 0; i < 1000; i++)
			count++;
	return unused;
}

int main(void)
{
	char *arguments[] = { "true", NULL }, *none[] = { NULL };
	FILE *file = tmpfile();
	pthread_t thread;

	if (!file || fprintf(file, "text") != 4 || fflush(file))
		return 1;
	if (pthread_create(&thread, NULL, counts, NULL))
		return 1;
	for (int i = 0; i < 20; i++) {
		char *text = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fileno(file), 0);
		pid_t child;
		int status;

		if (text == MAP_FAILED || *text != 't' || munmap(text, 4096))
			return 1;
		if (posix_spawn(&child, "/bin/true", NULL, NULL, arguments, none) || waitpid(child, &status, 0) != child || status)
			return 1;
	}
	ended = 1;
	pthread_join(thread, NULL);
	return 0;
}
