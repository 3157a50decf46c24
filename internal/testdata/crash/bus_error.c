// A mapped file is shorter than its mapping.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline, noipa)) static int last(const char *p)
{
    // WANT: bus-error read:@LINE+1
    return p[5000];
}

int main(void)
{
    char name[] = "mapped-XXXXXX";
    int fd = mkstemp(name);
    unlink(name);
#ifdef FIXED
    ftruncate(fd, 8192);
#else
    ftruncate(fd, 100);
#endif
    const char *p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    return last(p);
}
