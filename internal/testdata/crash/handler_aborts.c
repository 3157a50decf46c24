// The handler of a crash writes a line and aborts: the crash is the failure.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct slot {
    int value;
};

static struct slot *volatile slot;
static struct slot real;

static void on_fault(int sig)
{
    if (write(2, "fatal\n", 6) == 6)
        abort();
}

__attribute__((noinline, noipa)) static int poke(struct slot *s)
{
    // WANT: null-pointer read:@LINE+1
    return s->value;
}

int main(void)
{
#ifdef FIXED
    slot = &real;
#endif
    signal(SIGSEGV, on_fault);
    return poke(slot);
}
