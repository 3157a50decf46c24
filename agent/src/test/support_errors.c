/* Commits the errors named by its arguments, one after the other, and leaves
 * with the status that the last argument is. */
#define _GNU_SOURCE
#include <string.h>

#include "support_agent.h"

#define NOINLINE __attribute__((noinline))

static volatile size_t one = 1;
static char *volatile kept;

static NOINLINE char *allocate(size_t n)
{
	char *p = malloc(n);

	CHECK(p);
	memset(p, 'p', n);
	return p;
}

static NOINLINE void release(char *volatile p)
{
	free(p);
	__asm__ volatile("" ::: "memory");
}

static void write_at(char *volatile p, long offset, char value)
{
	p[offset] = value;
}

static void commit(const char *error)
{
	char *p = allocate(40 * one);

	if (!strcmp(error, "overflow")) {
		write_at(p, 40, 'X');
		write_at(p, 42, 'Y');
		release(p);
	} else if (!strcmp(error, "overflow-live")) {
		write_at(p, 40, 'X');
		kept = p;
	} else if (!strcmp(error, "overflow-while-running")) {
		write_at(p, 40, 'X');
		kept = p;
		for (size_t i = 0; i < 500000000 && !agent_root()->error_count; i++)
			release(allocate(1 + i % 100));
	} else if (!strcmp(error, "underflow-live")) {
		/* Before the first object of a span there is a guard; this class has
		 * only this object. */
		p = allocate(5000 * one);
		write_at(p, -1, 'X');
		kept = p;
	} else if (!strcmp(error, "overflow-large")) {
		p = allocate(300000 * one);
		write_at(p, 300001, 'X');
		kept = p;
	} else if (!strcmp(error, "underflow-large")) {
		p = allocate(300000 * one);
		write_at(p, -3, 'X');
		kept = p;
	} else if (!strcmp(error, "write-after-free")) {
		release(p);
		write_at(p, 8, 'W');
	} else if (!strcmp(error, "write-after-free-large")) {
		p = allocate(300000 * one);
		release(p);
		write_at(p, 17, 'W');
	} else if (!strcmp(error, "double-free")) {
		release(p);
		release(p);
	} else if (!strcmp(error, "free-middle")) {
		release(p + 16);
	} else if (!strcmp(error, "clean")) {
		release(p);
	} else {
		CHECK(!"known error");
	}
}

int main(int argc, char **argv)
{
	agent_root();
	for (int i = 1; i < argc - 1; i++)
		commit(argv[i]);
	fprintf(stderr, "errors=%u\n", agent_root()->error_count);
	printf("buffered output\n");
	return atoi(argv[argc - 1]);
}
