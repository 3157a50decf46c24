// A vfork child crashes before it runs its program.
#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>

static char *volatile name;
static char real[] = "x";

__attribute__((noinline, noipa)) static void rename_child(char *s)
{
    // WANT: null-pointer write:@LINE+1
    s[0] = 'c';
}

__attribute__((noinline, noipa)) static int spawn(void)
{
    int status = 1;
    pid_t pid = vfork();
    if (pid == 0) {
        rename_child(name);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return status;
}

int main(void)
{
#ifdef FIXED
    name = real;
#endif
    return spawn() != 0;
}
