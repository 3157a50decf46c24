/* Preloaded together with the agent: writes a line to the file named by WITNESS when
 * a process starts and when it exits, so that a test knows that the agent was
 * inside and what it counted.
 *
 *   start|exit <program> <agent loaded> <allocations> <errors>
 *
 * With WITNESS_EXIT=no only at its start, for a program that is not allowed to
 * open a file later.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layout.h"

extern uint64_t diagnose_agent_root __attribute__((weak));

static void testify(const char *when)
{
	const char *path = getenv("WITNESS");
	char exe[256], line[512];
	unsigned long long allocations = 0;
	unsigned errors = 0, loaded = 0;
	int saved = errno, fd, n;

	if (!path || (*when == 'e' && getenv("WITNESS_EXIT")))
		return;
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[n < 0 ? 0 : n] = 0;
	loaded = &diagnose_agent_root != NULL;
	if (loaded && diagnose_agent_root) {
		const struct dg_root *root = (const struct dg_root *)diagnose_agent_root;
		const struct dg_heap *heaps = (const struct dg_heap *)root->heaps.start;

		errors = root->error_count;
		for (uint64_t i = 0; i < root->heaps.used; i++)
			allocations += heaps[i].allocations;
	}
	/* One write to a file that is open for appending: lines of several
	 * processes do not mix. */
	n = snprintf(line, sizeof(line), "%s %s %u %llu %u\n", when, exe, loaded, allocations, errors);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0) {
		if (write(fd, line, n) != n)
			_exit(99);
		close(fd);
	}
	errno = saved;
}

__attribute__((constructor)) static void started(void) { testify("start"); }
__attribute__((destructor)) static void exits(void) { testify("exit"); }
