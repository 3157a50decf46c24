// Memory that a child of the process does not have: one page is empty in a child, the next one is not there.
//
// ENDS: SIGSEGV
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

int main(void)
{
	char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(at, 1, 8192);
	if (madvise(at, 4096, MADV_WIPEONFORK) || madvise(at + 4096, 4096, MADV_DONTFORK))
		return 1;
	for (int i = 0; i < 20; i++)
		clock_gettime(CLOCK_MONOTONIC, (struct timespec *)at);
	return *(volatile char *)(at[4096] == 1 ? NULL : at);
}
