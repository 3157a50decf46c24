// A signal's handler looks at a state that the program has just given back.
// KERNEL: gdb stops at the signal that is handled
#include <signal.h>
#include <stdlib.h>

#include "lib/hide.h"

struct log {
    int level;
};

struct state {
    long ticks;
    struct log *log;
};

static struct state *volatile state;
static struct log log_of_all = {3};
static volatile int level;

static void on_signal(int number)
{
    (void)number;
    // WANT: use-after-free read:@LINE+1
    level = state->log->level;
}

int main(void)
{
    state = hide((struct state *)calloc(1, sizeof *state)); // @made
    state->log = &log_of_all;
    signal(SIGUSR1, on_signal);
#ifdef FIXED
    raise(SIGUSR1);
    free(state);
#else
    free(state); // @freed
    // HEAP: use-after-free object=16 alloc:@made free:@freed
    raise(SIGUSR1);
#endif
    return level != 3;
}
