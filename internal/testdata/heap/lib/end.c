/* Preloaded after the agent, this says at the end of a program whether the
 * agent served it, and leaves a core of that moment when it is asked to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layout.h"

static int served(void)
{
    const uint64_t *root = dlsym(RTLD_DEFAULT, "diagnose_agent_root");
    uint64_t object;
    void *p;
    if (!root || !*root || ((const struct dg_root *)*root)->magic != DG_MAGIC)
        return 0;
    p = malloc(1);
    object = (uint64_t)p;
    free(p);
    return object >= *root + DG_OFF_OBJECTS && object < *root + DG_OFF_OBJECTS + DG_OBJECTS_LIMIT;
}

__attribute__((destructor)) static void end(void)
{
    const char *text = served() ? "served by the agent\n" : "not served by the agent\n";
    if (write(STDOUT_FILENO, text, strlen(text)) < 0 || !served())
        _exit(99);
    if (getenv("CORE_AT_END"))
        abort();
}
