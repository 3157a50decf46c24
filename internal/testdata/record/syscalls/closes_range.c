// A range of descriptors up to the highest number is closed, as daemons do: the standard
// streams stay, and so does the recording.
// ENDS: exit 0
// EVENTS: syscall 4
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "check.h"

int main(void)
{
	int fd = check(open("/dev/null", O_RDONLY));
	check(close_range(3, ~0u, 0));
	must(fcntl(fd, F_GETFD) == -1);
	must(fcntl(0, F_GETFD) >= 0 && fcntl(1, F_GETFD) >= 0 && fcntl(2, F_GETFD) >= 0);
	check(write(1, "whole\n", 6));
	check(getppid());
	return 0;
}
