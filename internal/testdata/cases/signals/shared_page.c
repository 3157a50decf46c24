/* Another process may have written to the page that is shared with it: one thread and no signal
   do not say that no order of accesses could have been another. */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) static int share(volatile int *parts) { return 100 / parts[0]; }
int main(int argc, char **argv)
{
	volatile int *parts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;
	(void)argv;
	if (parts == MAP_FAILED)
		return 2;
	child = fork();
	if (child == 0) {
		parts[0] = 4;
		_exit(0);
	}
	if (argc > 1)
		waitpid(child, NULL, 0);
	else
		parts[0] = 0;
	printf("%d\n", share(parts));
	return 0;
}
