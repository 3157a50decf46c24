// The handler of a crash, on a stack of its own, sends the signal again by kill and returns.
#include <signal.h>
#include <unistd.h>

struct slot {
    int value;
};

static struct slot *volatile slot;
static struct slot real;
static char room[65536];

static void on_fault(int sig)
{
    if (write(2, "fatal\n", 6) != 6)
        return;
    signal(sig, SIG_DFL);
    kill(getpid(), sig);
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
    stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};

    sigaltstack(&stack, NULL);
    sigfillset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    return poke(slot);
}
