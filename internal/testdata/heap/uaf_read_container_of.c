// The link in the middle of a freed timer leads to its neighbour's start, by
// the usual subtraction.
#include <stddef.h>
#include <stdlib.h>

#include "lib/hide.h"

struct link {
    struct link *next;
};

struct timer {
    long deadline;
    char name[24];
    struct link link;
    long period;
};

#define timer_of(l) ((struct timer *)((char *)(l) - offsetof(struct timer, link)))

NOINLINE static struct timer *make(long deadline, struct link *next)
{
    struct timer *t = hide((struct timer *)calloc(1, sizeof *t)); // @made
    t->deadline = deadline;
    t->link.next = next;
    return t;
}

NOINLINE static long next_deadline(struct timer *t)
{
    // WANT: use-after-free read:@LINE+1
    return timer_of(t->link.next)->deadline;
}

int main(void)
{
    struct timer *last = make(20, NULL);
    struct timer *first = make(10, &last->link); // @first
#ifdef FIXED
    long deadline = next_deadline(first);
    free(first);
#else
    free(first); // @freed
    // HEAP: use-after-free object=48 alloc:@made<@first free:@freed
    long deadline = next_deadline(hide(first));
#endif
    free(last);
    return deadline != 20;
}
