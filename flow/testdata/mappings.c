// Memory that system calls mapped, moved and took away.
//
// FLAGS: -O1
// ENDS: SIGABRT
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
char *unmapped, *old, *moved, *grown, *detached, *attached;

// Each has a place of its own: the kernel reuses the places that are free.
#define PLACE(n) ((void *)(0x100000000000 + ((size_t)(n) << 24)))

static char *map(void *place, size_t size)
{
	return mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}
int main(void)
{
	int id = shmget(IPC_PRIVATE, 5000, IPC_CREAT | 0600);

	unmapped = map(PLACE(1), 8192);
	munmap(unmapped, 8192);
	old = map(PLACE(2), 4096);
	strcpy(old, "text to move");
	moved = mremap(old, 4096, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, PLACE(3));
	grown = map(PLACE(4), 4096);
	grown = mremap(grown, 4096, 8192, 0);
	detached = shmat(id, PLACE(5), 0);
	shmdt(detached);
	attached = shmat(id, PLACE(6), 0);
	shmctl(id, IPC_RMID, NULL);
	abort();
}
