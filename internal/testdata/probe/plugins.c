/* Loads plugins at one address, one after the other, and calls each: with FIRST and SECOND the plugins, else the program.
 * The plugins have the same size, and their instructions begin at other addresses. */
#if defined FIRST
int plugin_first(int by)
{
    volatile int twice = by;
    twice += by;
    return twice + 1;
}
int plugin_work(int by) { return plugin_first(by) - 1; }
#elif defined SECOND
static volatile long steps;
int plugin_work(int by)
{
    steps = 0x5555555555555555;
    steps += 0x5555555555555555;
    steps ^= 0x1122334455667788;
    return (int)(steps != 0) * by * 2;
}
int plugin_second(int by)
{
    steps -= 0x1111111111111111;
    return plugin_work(by) + 3;
}
#else
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    void *base = NULL;
    for (int i = 1; i < argc; i++) {
        void *object = dlopen(argv[i], RTLD_NOW);
        void *at = dlsym(object, "plugin_work");
        int (*work)(int) = (int (*)(int))at;
        Dl_info info;
        if (!dladdr(at, &info) || (base && info.dli_fbase != base))
            exit(2); /* the test needs one address */
        base = info.dli_fbase;
        for (int n = 0; n < 4; n++)
            if (work(n) != 2 * n)
                exit(3);
        if (i < argc - 1)
            dlclose(object);
    }
    abort();
}
#endif
