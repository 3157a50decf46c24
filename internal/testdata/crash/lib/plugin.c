// A plugin that asks its host for an option.
static volatile int started;

int plugin_start(int (*option)(int))
{
    started = 1;
    return option(started) + 1;
}
