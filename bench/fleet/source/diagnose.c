/* Stands for diagnose: waits or computes as the core says, and copies a report. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	const char *core = NULL, *output = NULL;
	for (int i = 1; i + 1 < argc; i++) {
		if (!strcmp(argv[i], "--core"))
			core = argv[i + 1];
		if (!strcmp(argv[i], "--output"))
			output = argv[i + 1];
	}
	char text[128] = "", what[16];
	int number, ms, in = core ? open(core, O_RDONLY) : -1;
	if (!output || in < 0 || pread(in, text, sizeof text - 1, 64) < 0 || sscanf(text, "%15s %d %d", what, &ms, &number) != 3) {
		fprintf(stderr, "diagnose: the core cannot be read\n");
		return 3;
	}
	int log = open(getenv("FLEET_LOG"), O_WRONLY | O_APPEND);
	if (log < 0 || dprintf(log, "%d\n", number) < 0) {
		perror("diagnose: the log");
		return 1;
	}
	if (!strcmp(what, "wait"))
		nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
	if (!strcmp(what, "burn"))
		for (double end = cpu() + ms / 1e3; cpu() < end;)
			;
	if (!strcmp(what, "poison")) { /* it is confined, and cannot kill its worker itself */
		int killer = open(getenv("FLEET_KILLER"), O_WRONLY);
		if (killer < 0 || dprintf(killer, "%d\n", getppid()) < 0) {
			perror("diagnose: the killer");
			return 1;
		}
		pause();
	}
	static char report[1 << 16];
	int from = open(getenv("FLEET_REPORT"), O_RDONLY), to = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ssize_t n = read(from, report, sizeof report);
	if (n <= 0 || write(to, report, n) != n) {
		perror("diagnose: the report");
		return 1;
	}
	return 0;
}
