/* A plugin that makes lists. */
#include <stdlib.h>

#include "hide.h"

int *list_make(int n)
{
    int *list = hide((int *)calloc(n, sizeof *list));
    done();
    return list;
}
