/* A pointer to a local variable outlives its function. The next one has its counter in
 * the same word, one half of which it changes: it stores inside of its own variable. */
// ENDS: SIGSEGV
// FLAGS: -O0
#include <stdio.h>

struct context {
	const char *name;
	int *counter;
};

static struct context *current;

__attribute__((noinline)) static void enter(const char *name, int *counter)
{
	struct context c = { name, counter };
	current = &c; // WANT
}

__attribute__((noinline)) static int work(int n)
{
	volatile long pad[16];
	for (int i = 0; i < 16; i++)
		pad[i] = n * 1000003L;
	return (int)pad[3];
}

int main(void)
{
	int counter = 0;
	enter("job", &counter);
	int result = work(77);
	++*current->counter;
	printf("%d %d\n", counter, result);
	return 0;
}
