// A plugin is loaded at run time and given no configuration.
// PLUGIN: plugin.c
// ARGS: {dir}/libplugin.so
// FLAGS: -ldl
#include <dlfcn.h>
#include <stddef.h>

static const int *volatile settings[2];
static int real = 1;

static int option(int n)
{
    // WANT: null-pointer read:@LINE+1
    return settings[n][0];
}

int main(int argc, char **argv)
{
    void *plugin = dlopen(argv[1], RTLD_NOW);
    if (!plugin)
        return 2;
#ifdef FIXED
    settings[1] = &real;
#endif
    int (*start)(int (*)(int)) = (int (*)(int (*)(int)))dlsym(plugin, "plugin_start");
    return start(option) != 2;
}
