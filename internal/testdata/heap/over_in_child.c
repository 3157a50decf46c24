// The parent allocates, the child after fork writes too much and frees.
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/hide.h"

NOINLINE static void child(char *job)
{
#ifdef FIXED
    memcpy(job, "compress it", 11);
#else
    memcpy(job, "decompress it", 13);
#endif
    done();
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=11 offset=11 bytes=2 text=it alloc:@made(main) call:@LINE+1(main)
    free(job);
    char *own = hide((char *)malloc(30));
    free(own);
}

int main(void)
{
    char *job = hide((char *)malloc(11)); // @made
    pid_t pid = fork();
    if (pid == 0) {
        child(job);
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    free(job);
    return status != 0;
}
