// A short path lives in the caller's buffer, and is freed as the long ones are.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

NOINLINE static char *join(char *small, size_t room, const char *name)
{
    char *path = small;
    if (strlen(name) + 2 > room)
        path = hide((char *)malloc(strlen(name) + 2));
    path[0] = '/';
    strcpy(path + 1, name);
    return path;
}

int main(void)
{
    char small[32];
    char *path = hide(join(small, sizeof small, "tmp"));
#ifdef FIXED
    if (path != small)
#endif
        // WANT: invalid-free:@LINE+2
        // HEAP: invalid-free says=stack call:@LINE+1
        free(path);
    return 0;
}
