// The failing code reads and writes globals, and heap words that they point to.
#include <stdlib.h>
#include <string.h>

struct worker {
    int state;
    long *counter;
};
struct config {
    char name[16];
    struct worker workers[4];
    struct worker *active;
};

static struct config cfg;
static long counters[4];
static int runs;
int limit = 3;

__attribute__((noinline, noipa)) static long tick(int n)
{
    struct worker *w = cfg.active;
    runs++;
    if (runs > limit)
        return -1;
    w->state = cfg.workers[3].state + 1;
    // WANT: null-pointer read:@LINE+1
    return *w->counter + n;
}

int main(void)
{
    strcpy(cfg.name, "main");
    cfg.active = calloc(1, sizeof *cfg.active);
    cfg.workers[3].state = 8;
#ifdef FIXED
    cfg.active->counter = &counters[1];
#endif
    return tick(0) != 0;
}
