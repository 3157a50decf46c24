/* Sites: equal for equal stacks at any depth, different for different ones,
 * and their addresses are those of the stack. */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_probe.h"

#define NOINLINE __attribute__((noinline))
#define STAY() __asm__ volatile("" ::: "memory")
#define CHECK(condition)                                                     \
	do {                                                                 \
		if (!(condition)) {                                          \
			printf("line %d: not so: %s\n", __LINE__, #condition); \
			exit(1);                                             \
		}                                                            \
	} while (0)

static unsigned frames;

/* One call that returns the site and checks it against the walk. Two calls on
 * one line have the same stack but for the innermost address. */
static NOINLINE unsigned site(void)
{
	uint64_t walked[32], kept[32];
	unsigned n = support_stack(walked, 32), s = support_site(), k = support_site_frames(s, kept);

	CHECK(s && k <= frames);
	CHECK(n >= k);
	for (unsigned i = 1; i < k; i++)
		CHECK(kept[i] == walked[i]);
	CHECK(k == frames || n - k <= 3);
	STAY();
	return s;
}

static NOINLINE unsigned by_a(void) { unsigned s = site(); STAY(); return s; }
static volatile int told_apart; /* identical functions are merged */
static NOINLINE unsigned by_b(void) { unsigned s = site(); told_apart++; return s; }

static NOINLINE unsigned recurse(int depth)
{
	volatile char local[40] = { 0 };
	unsigned s = depth ? recurse(depth - 1) : by_a();

	STAY();
	return s + (unsigned)local[3];
}

static NOINLINE unsigned with_alloca(size_t n)
{
	char *p = alloca(n);
	unsigned s;

	memset(p, 0, n);
	s = by_b();
	STAY();
	return s + (unsigned)p[n - 1];
}

static void *thread(void *expected)
{
	unsigned s = recurse(20);

	CHECK(s == *(unsigned *)expected);
	for (int i = 0; i < 20000; i++)
		CHECK(recurse(20 + i % 50) == s);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned a, b, s, deep, before;
	pthread_t t[4];

	frames = argc > 1 ? (unsigned)atoi(argv[1]) : 8;
	a = by_a();
	b = by_b();
	CHECK(frames == 1 ? a == b : a != b);
	/* The top of the stack has to be further than the frames that are kept. */
	s = deep = recurse(20);
	before = support_sites();
	for (int depth = 20; depth < 2000; depth += 7)
		CHECK(recurse(depth) == s);
	CHECK(support_sites() == before);
	s = 0;
	for (size_t n = 16; n < 20000; n += 16) {
		unsigned now = with_alloca(n);

		CHECK(!s || now == s);
		s = now;
	}
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, thread, &deep));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(t[i], NULL));
	printf("ok %u\n", support_sites() < 100);
	return 0;
}
