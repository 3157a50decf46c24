/* The program blocks SIGSEGV while it has a pointer that leads nowhere, and handles a fault later. */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

struct item {
    int key;
};

static sigjmp_buf before;
static volatile int faults;
struct item *volatile last;

__attribute__((noinline)) void look(struct item *item)
{
    last = item;
}

static void handler(int number)
{
    faults += number == SIGSEGV;
    siglongjmp(before, 1);
}

int main(void)
{
    sigset_t all, old;
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGSEGV, &action, NULL);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    for (int i = 0; i < 3; i++)
        look((struct item *)0x100000000000);
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (!sigsetjmp(before, 1))
        last->key++;
    look(NULL);
    abort();
}
