/* Loads itself twice as a plugin, and unloads it between: with PLUGIN the plugin, else the program. */
#ifdef PLUGIN
static int sum;

int plugin_work(int by)
{
    sum += by;
    return sum;
}
#else
#include <dlfcn.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    for (int round = 0; round < 3 && argc > 1; round++) {
        void *object = dlopen(argv[1], RTLD_NOW);
        int (*work)(int) = (int (*)(int))dlsym(object, "plugin_work");
        for (int i = 0; i < 4; i++)
            work(i);
        if (round < 2)
            dlclose(object);
    }
    abort();
}
#endif
