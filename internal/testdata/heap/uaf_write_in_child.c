// After fork the child cleans up, and then its log still goes to the buffer.
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/hide.h"

static char *buffer;

NOINLINE static void record(const char *text)
{
    strcpy(buffer, text);
    done();
}

NOINLINE static void child(void)
{
#ifdef FIXED
    record("ended");
    free(buffer);
#else
    free(buffer); // @freed
    buffer = hide(buffer);
    record("ended");
#endif
    // WANT: use-after-free:@LINE+2
    // HEAP: use-after-free object=90 offset=0 bytes=5 hex=656e646564 alloc:@made(main) free:@freed(main) call:nowhere(main)
    exit(0);
}

int main(void)
{
    buffer = hide((char *)malloc(90)); // @made
    pid_t pid = fork();
    if (pid == 0)
        child();
    int status = 0;
    waitpid(pid, &status, 0);
    free(buffer);
    return status != 0;
}
