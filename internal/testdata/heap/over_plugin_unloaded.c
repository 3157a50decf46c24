// A plugin's list outlives the plugin. The place of its allocation is in code
// that is gone; its caller is still known.
// PLUGIN: list.c
// ARGS: {dir}/liblist.so
// FLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

#include "lib/hide.h"

int main(int argc, char **argv)
{
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!plugin)
        return 2;
    int *(*make)(int) = (int *(*)(int))dlsym(plugin, "list_make");
    int *list = hide(make(6)); // @asked
    dlclose(plugin);
#ifdef FIXED
    list[5] = 0x6c6c6c6c;
#else
    list[6] = 0x6c6c6c6c;
#endif
    done();
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=24 offset=24 bytes=4 text=llll alloc:@asked call:@LINE+1
    free(list);
    return 0;
}
