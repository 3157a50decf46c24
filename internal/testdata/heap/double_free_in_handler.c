// A handler for SIGTERM frees the lock file's name, which main has freed.
// KERNEL: gdb stops at the signal that is handled
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

static char *volatile lock_file;

static void on_terminate(int number)
{
    (void)number;
    // WANT: double-free:@LINE+2
    // HEAP: double-free object=31 alloc:@made free:@first call:@LINE+1
    free(lock_file);
    lock_file = NULL;
}

int main(void)
{
    signal(SIGTERM, on_terminate);
    lock_file = hide((char *)malloc(31)); // @made
    strcpy(lock_file, "/run/lock/daemon");
#ifndef FIXED
    free(lock_file); // @first
#endif
    raise(SIGTERM);
    return lock_file != NULL;
}
