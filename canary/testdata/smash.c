// A buffer overrun, found by the function itself ("smash"), or not found yet
// because the program crashes in a function it called ("early") or in one
// called by that ("deep"). With "healthy" it crashes there unharmed.
#include <signal.h>
#include <stdio.h>
#include <string.h>

static int *volatile nowhere;

__attribute__((noinline)) void copy(char *to, const char *from, size_t n) {
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = from[i];
}

__attribute__((noinline)) void stop(const char *mode) {
    if (mode[0] != 's')
        *nowhere = mode[0];
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) int deeper(const char *mode) {
    char local[48];
    copy(local, mode, 2);
    stop(mode);
    return local[1];
}

__attribute__((noinline)) int handle(const char *mode, size_t n) {
    static const char text[] = "AAAAAAAABBBBBBBBCCCCCCCCDDDDDDDDEEEEEEEEFFFFFFFFGGGGGGGGHHHHHHHH";
    char buf[32];
    copy(buf, text, n);
    int r = mode[0] == 'd' ? deeper(mode) : 0;
    stop(mode);
    return r + buf[n % sizeof buf];
}

__attribute__((noinline)) int variable(const char *mode, size_t n, int room) {
    static const char text[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    char fixed[16];
    char buf[room];
    copy(buf, text, 4);
    copy(fixed, text, n);
    stop(mode);
    return fixed[n % sizeof fixed] + buf[0];
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "healthy";
    size_t more = mode[0] == 'h' ? 0 : 16;
    if (argc > 2)
        return variable(mode, 16 + more, 20 + argc);
    return handle(mode, 32 + more);
}
