// A mapping is given back and read again.
#include <stddef.h>
#include <sys/mman.h>

__attribute__((noinline, noipa)) static int read_config(const int *config)
{
    // WANT: unmapped-address read:@LINE+1
    return config[3];
}

int main(void)
{
    int *config = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    config[3] = 1;
#ifndef FIXED
    munmap(config, 1 << 16);
#endif
    return read_config(config) != 1;
}
