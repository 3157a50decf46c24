// A long user name runs through the guard and into the next user.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

struct user {
    char name[24];
};

static struct user *users[3];

NOINLINE static void rename_user(struct user *u, const char *name)
{
#ifdef FIXED
    snprintf(u->name, sizeof u->name, "%s", name);
#else
    strcpy(hide(&u->name[0]), name);
#endif
}

int main(void)
{
    for (int i = 0; i < 3; i++)
        users[i] = hide((struct user *)calloc(1, sizeof *users[i])); // @made
    rename_user(users[1], "wolfeschlegelsteinhausenbergerdorff");
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=24 offset=24 bytes=8 text=bergerdo reaches beyond=24 alloc:@made call:@LINE+1
    free(users[1]);
    free(users[0]);
    free(users[2]);
    return 0;
}
