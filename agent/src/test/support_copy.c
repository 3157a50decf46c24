/* What one object's guard or fill says is copied over another one's, as a
 * memcpy that is too long does it: each copy is found when the object is freed.
 * A twin of each, one byte shorter, is silent. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support_agent.h"

static unsigned errors(void)
{
	return agent_root()->error_count;
}

/* The compiler would see how long the objects are. */
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
static void (*volatile release)(void *) = free;

static void pair(size_t size, size_t over, size_t between)
{
	char *skipped[64], *from = malloc(size), *to;
	unsigned before = errors();

	for (size_t i = 0; i < between; i++)
		skipped[i] = malloc(size);
	to = malloc(size);
	memset(from, 1, size);
	copy(to, from, size);
	copy(to + size, from + size, over);
	free(to);
	free(from);
	if (errors() - before != (over ? 1u : 0u)) {
		fprintf(stderr, "%zu bytes of a guard were copied between objects of %zu bytes, %zu apart: %u errors\n",
			over, size, between + 1, errors() - before);
		_Exit(1);
	}
	for (size_t i = 0; i < between; i++)
		free(skipped[i]);
}

static void pairs(void)
{
	static const size_t large[] = { 131072, 200000, 200003, 1000000 };
	size_t size, over;

	for (size = 1; size < 600; size += 7)
		for (over = 0; over <= 8; over++)
			pair(size, over, size % 5 * 11);
	for (size = 601; size < 130000; size += 4099)
		for (over = 0; over <= 8; over++)
			pair(size, over, 1);
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
		for (over = 0; over <= 8; over++)
			pair(large[i], over, i);
}

/* Before a large object, as before the first one of a span. */
static void before_large(void)
{
	char *from = malloc(300000), *to = malloc(300000);
	unsigned before = errors();

	copy(to - 8, from - 8, 8);
	free(to);
	free(from);
	CHECK(errors() == before + 1);
}

/* An object that grew or shrank where it is keeps a guard of its own. */
static void resized(size_t from_size, size_t to_size)
{
	char *from = realloc(malloc(from_size), to_size), *to = realloc(malloc(from_size), to_size);
	unsigned before = errors();

	copy(to + to_size, from + to_size, 8);
	free(to);
	free(from);
	CHECK(errors() == before + 1);
}

/* A freed object's fill over another one's; the check at exit of the child
 * finds it. */
static void freed(size_t size, size_t length)
{
	pid_t child = fork();
	int status;

	if (!child) {
		char *from = malloc(size), *to = malloc(size);
		release(from);
		release(to);
		copy(to, from, length);
		exit(0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(status == (length ? 66 << 8 : 0));
}

/* A child has the guards of its parent. */
static void inherited(void)
{
	char *from = malloc(50), *to = malloc(50);
	pid_t child = fork();
	int status;

	if (!child) {
		unsigned before = errors();

		free(malloc(50));
		copy(from + 50, to + 50, 5);
		free(to);
		CHECK(errors() == before);
		free(from);
		CHECK(errors() == before + 1);
		_Exit(0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && !status);
	free(from);
	free(to);
}

int main(void)
{
	inherited();
	for (size_t length = 0; length <= 40; length += 8)
		freed(48, length);
	freed(300000, 24);
	pairs();
	before_large();
	resized(100, 97);
	resized(200000, 190001);
	puts("ok");
	fflush(stdout);
	_Exit(0);
}
