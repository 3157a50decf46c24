// A handler on its own stack frees the overrun buffer.
// KERNEL: gdb stops at the signal that is handled
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

static char *volatile buffer;
static char stack[1 << 16];

static void on_signal(int number)
{
    (void)number;
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=20 offset=20 bytes=2 text=22 alloc:@made call:@LINE+1
    free(buffer);
    done();
}

int main(void)
{
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaltstack(&alternate, NULL);
    sigaction(SIGUSR2, &action, NULL);
    buffer = hide((char *)malloc(20)); // @made
#ifdef FIXED
    memset(buffer, '2', 20);
#else
    memset(buffer, '2', 22);
#endif
    raise(SIGUSR2);
    return 0;
}
