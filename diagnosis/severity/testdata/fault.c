// A library to preload: it spoils one allocation of a program that it was not built with, so that the
// program fails in code of its own or of its libraries. FAULT_AT counts the calls of malloc from 1,
// FAULT_HOW says what happens at that one:
//
//   return:ADDRESS   malloc returns ADDRESS
//   fill             this and all later objects are filled with 'A'
//   over             the 64 bytes after the object are overwritten
//   free             the object is freed at once, and again when the program frees it
//   stack            the frames of the callers are overwritten with 'A'
//   data             a jump to the object's bytes
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);

static long calls, at = -1;
static char how[64];

__attribute__((constructor)) static void start(void)
{
    const char *number = getenv("FAULT_AT"), *text = getenv("FAULT_HOW");
    strncpy(how, text ? text : "", sizeof how - 1);
    calls = 0;
    at = number ? atol(number) : -1;
}

__attribute__((noinline)) static void spoil_stack(void)
{
    char *volatile frame = __builtin_frame_address(0);
    for (int i = 0; i < 1024; i++)
        frame[i] = 'A';
}

void *malloc(size_t n)
{
    char *p = __libc_malloc(n);
    if (at < 0 || ++calls < at || !p)
        return p;
    if (!strcmp(how, "fill"))
        return memset(p, 'A', n);
    if (calls != at)
        return p;
    if (!strncmp(how, "return:", 7))
        return (void *)strtoul(how + 7, NULL, 16);
    if (!strcmp(how, "over"))
        memset(p + n, 'A', 64);
    if (!strcmp(how, "free"))
        __libc_free(p);
    if (!strcmp(how, "stack"))
        spoil_stack();
    if (!strcmp(how, "data"))
        ((void (*)(void))p)();
    return p;
}
