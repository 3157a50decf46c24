// A handler of a timer's signal follows a pointer that is not set yet.
#include <signal.h>
#include <string.h>
#include <sys/time.h>

struct stats {
    long ticks, work;
};
static struct stats *volatile stats;
static struct stats real;
static volatile sig_atomic_t ticked;

static void on_tick(int sig)
{
    // WANT: null-pointer read:@LINE+1
    stats->ticks++;
    ticked = 1;
}

__attribute__((noinline, noipa)) static unsigned long spin(void)
{
    unsigned long n = 0;
    while (!ticked)
        n++;
    return n;
}

int main(void)
{
#ifdef FIXED
    stats = &real;
#endif
    signal(SIGALRM, on_tick);
    struct itimerval soon = {{0, 0}, {0, 2000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    return spin() == 1;
}
