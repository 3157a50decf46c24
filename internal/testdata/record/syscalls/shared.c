// Memory that other processes may write: the recording says so, and whatever comes
// after each mapping of it is still in order.
// ENDS: exit 0
// EVENTS: syscall 12
// EVENTS: limit 3
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { BYTES = 8192 };

static char *named(void)
{
	char name[64];

	snprintf(name, sizeof(name), "/diagnose-shared-%d", (int)getpid());
	int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	must(fd >= 0);
	must(shm_unlink(name) == 0);
	must(ftruncate(fd, BYTES) == 0);
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(p != MAP_FAILED);
	must(close(fd) == 0);
	return p;
}

static char *attached(void)
{
	int id = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600);
	must(id >= 0);
	char *p = shmat(id, NULL, 0);
	must(p != (void *)-1);
	must(shmctl(id, IPC_RMID, NULL) == 0);
	return p;
}

int main(void)
{
	char *first = named(), *second = attached();
	char *third = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(third != MAP_FAILED);
	strcpy(first, "first");
	strcpy(second, first);
	strcpy(third, second);
	pid_t child = fork();
	must(child >= 0);
	if (!child)
		_exit(strcmp(third, "first") != 0 ? 1 : 0);
	int status;
	must(waitpid(child, &status, 0) == child && status == 0);
	must(shmdt(second) == 0);
	must(munmap(first, BYTES) == 0);
	must(getppid() > 0);
	return 0;
}
