// A plugin gave back its state when it was told to stop, and is asked again.
// PLUGIN: counter.c
// ARGS: {dir}/libcounter.so
// FLAGS: -ldl
#include <dlfcn.h>
#include <stddef.h>

#include "lib/hide.h"

int main(int argc, char **argv)
{
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!plugin)
        return 2;
    void (*start)(void) = (void (*)(void))dlsym(plugin, "counter_start");
    void (*add)(int) = (void (*)(int))dlsym(plugin, "counter_add");
    void (*stop)(void) = (void (*)(void))dlsym(plugin, "counter_stop");
    start();
    add(1);
#ifdef FIXED
    add(0x35353535);
    stop();
#else
    stop();
    // WANT: use-after-free:nowhere
    // HEAP: use-after-free object=72 offset=4 bytes=4 text=5555 alloc:@counter-made free:@counter-freed call:nowhere
    add(0x35353535);
#endif
    return 0;
}
