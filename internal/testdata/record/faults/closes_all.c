// A program that closes whatever descriptors there may be, twice, and continues.
//
// ENDS: SIGABRT
// EVENTS: syscall 1000
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
	long most = sysconf(_SC_OPEN_MAX);

	for (long i = 3; i < (most < 20000 ? most : 20000); i++)
		close((int)i);
	if (close_range(3, ~0u, 0))
		return 3;
	for (int i = 0; i < 100; i++) {
		int fd = open("/dev/zero", O_RDONLY);
		char c[64];

		if (fd != 3 || read(fd, c, sizeof(c)) != sizeof(c) || close(fd))
			return 4;
	}
	if (dup2(0, 8192) >= 0 && close(8192))
		return 5;
	abort();
}
