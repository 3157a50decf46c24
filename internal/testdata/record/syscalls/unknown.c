// Calls that are refused, and one that no table knows.
// ENDS: SIGABRT
// EVENTS: syscall 5
// EVENTS: limit 1
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

int main(void)
{
	char area[256] = "";

	must(syscall(425, 8, area) == -1 && errno == ENOSYS); /* io_uring_setup */
	must(syscall(206, 8, area) == -1 && errno == ENOSYS); /* io_setup */
	must(syscall(334, area, 32, 0, 0) == -1 && errno == ENOSYS); /* rseq */
	must(syscall(999, 1, 2, 3) == -1 && errno == ENOSYS);
	must(syscall(999, 1, 2, 3) == -1 && errno == ENOSYS);
	abort();
}
