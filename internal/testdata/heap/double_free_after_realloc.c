// realloc moved the names, and the old pointer is freed besides.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

int main(void)
{
    char **names = hide((char **)malloc(3 * sizeof *names)); // @made
    char **before = names;
    memset(names, 0, 3 * sizeof *names);
    names = hide((char **)realloc(names, 3000 * sizeof *names)); // @moved
    names[2999] = NULL;
    free(names);
#ifndef FIXED
    // WANT: double-free:@LINE+2
    // HEAP: double-free object=24 alloc:@made free:@moved call:@LINE+1
    free(hide(before));
#endif
    return before == NULL;
}
