/* A plugin that counts. */
#include <stdlib.h>

#include "hide.h"

struct counter {
    int calls, last;
    long sums[8];
};

static struct counter *counter;

void counter_start(void)
{
    counter = hide((struct counter *)calloc(1, sizeof *counter)); // @counter-made
}

void counter_add(int n)
{
    hide(counter)->last = n;
    done();
}

void counter_stop(void)
{
    free(counter); // @counter-freed
    done();
}
