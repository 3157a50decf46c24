/* A callback keeps its argument as a number and hands it on as a pointer, which is meant; the null pointer is the bug. */
// ENDS: SIGSEGV
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct task {
	uintptr_t handle;
	int state;
};

struct owner {
	const char *name;
};

static struct task current;

__attribute__((noinline)) static void keep(uintptr_t handle)
{
	current.handle = handle;
	current.state = 1;
}

__attribute__((noinline)) static char name_of(const struct owner *o)
{
	return o->name[0];
}

__attribute__((noinline)) static char run(void)
{
	return name_of((const struct owner *)current.handle);
}

int main(void)
{
	struct owner *o = malloc(sizeof *o);
	o->name = NULL; /* TWIN */
	keep((uintptr_t)o);
	printf("%c\n", run());
	return 0;
}
