// Events at the bottom of 60,000 frames, 10,000 mappings, and 100 MB read at once.
//
// ENDS: SIGABRT
// FLAGS: -O0
// EVENTS: syscall 10000
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE (100ul << 20)

static unsigned long deeper(unsigned long n)
{
	volatile char room[64];

	room[0] = (char)n;
	if (!n)
		return (unsigned long)getppid();
	return deeper(n - 1) + (unsigned long)(unsigned char)room[0];
}

int main(void)
{
	int fd = open("/dev/zero", O_RDONLY);
	char *p = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (read(fd, p, LARGE) != (ssize_t)LARGE)
		return 3;
	munmap(p, LARGE);
	for (int i = 0; i < 10000; i++)
		if (mmap(NULL, 4096, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			return 4;
	if (deeper(60000) == 1)
		return 5;
	abort();
}
