// A forked child crashes while its parent waits.
#include <sys/wait.h>
#include <unistd.h>

struct task {
    int *volatile counter;
};
static struct task task;
static int real;

__attribute__((noinline, noipa)) static int child(struct task *t)
{
    // WANT: null-pointer read:@LINE+1
    return *t->counter;
}

int main(void)
{
#ifdef FIXED
    task.counter = &real;
#endif
    int status = 1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(child(&task));
    waitpid(pid, &status, 0);
    return status != 0;
}
