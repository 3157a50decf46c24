// The address space: files private and shared, moves, holes, the break.
// ENDS: SIGABRT
// EVENTS: syscall 25
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096ul

static char *map(unsigned long length, int prot, int flags, int fd, off_t at)
{
	char *p = mmap(NULL, length, prot, flags, fd, at);

	must(p != MAP_FAILED);
	return p;
}

static void files(void)
{
	char path[] = "/tmp/dgmapXXXXXX", page[PAGE];
	int fd = check(mkstemp(path));
	char *private, *shared, *later;

	for (int i = 0; i < 5; i++) {
		memset(page, 'a' + i, sizeof(page));
		check(write(fd, page, i == 4 ? 100 : PAGE));
	}
	private = map(8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	must(private[PAGE] == 'b' && private[4 * PAGE + 99] == 'e' && !private[4 * PAGE + 100]);
	private[0] = 'P';
	check(madvise(private, PAGE, MADV_DONTNEED));
	must(private[0] == 'a');
	shared = map(2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
	shared[1] = 'S';
	check(msync(shared, PAGE, MS_SYNC));
	later = map(PAGE, PROT_READ, MAP_SHARED, fd, PAGE);
	must(later[1] == 'S');
	must(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 0) == MAP_FAILED && errno == EBADF);
	fold_in(private, PAGE);
	fold_in(shared, 2 * PAGE);
	check(munmap(later, PAGE));
	check(close(fd));
	check(unlink(path));
}

static void anonymous(void)
{
	char *p = map(16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q, *shared;
	unsigned char in[16];

	p[0] = 1;
	p[15 * PAGE] = 2;
	check(mincore(p, 16 * PAGE, in));
	check(munmap(p + 4 * PAGE, 4 * PAGE));
	q = mmap(p + 4 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	must(q == p + 4 * PAGE);
	q = mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	must(q == p && !p[0]);
	check(mprotect(p + PAGE, PAGE, PROT_NONE));
	q = mremap(p + 8 * PAGE, 8 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
	must(q != MAP_FAILED && q[7 * PAGE] == 2);
	q[63 * PAGE] = 3;
	q = mremap(q, 64 * PAGE, 2 * PAGE, 0);
	must(q != MAP_FAILED);
	q[0] = 4;
	check(madvise(q, PAGE, MADV_FREE));
	fold_in(q, PAGE);
	shared = map(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared[5] = 5;
}

int main(void)
{
	char *old = sbrk(3 * PAGE);

	must(old != (char *)-1);
	memset(old, 7, 3 * PAGE);
	check(brk(old + PAGE));
	must(sbrk(0) == old + PAGE);
	files();
	anonymous();
	printf("%lx\n", fold);
	fflush(stdout);
	abort();
}
