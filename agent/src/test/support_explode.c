/* Sites of a call with very many stacks: few, their addresses those of the
 * stack, and as long as is worth it. */
#include <stdio.h>
#include <stdlib.h>

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

static unsigned frames, longest;

/* kept is of a call next to that of walked, so the innermost addresses differ. */
static void compare(unsigned site, const uint64_t *walked, unsigned n)
{
	uint64_t kept[32];
	unsigned k = support_site_frames(site, kept);

	CHECK(site && n >= k && k >= (frames < 2 ? frames : 2) && k <= frames);
	for (unsigned i = 1; i < k; i++)
		CHECK(kept[i] == walked[i]);
	longest = k > longest ? k : longest;
}

/* Two wrappers, so that one's stacks leave the other's sites alone. The texts
 * of the assembly, here and below, keep equal code from being merged. */
#define WRAPPER(name)                                        \
	static NOINLINE void name(void)                      \
	{                                                    \
		uint64_t walked[32];                         \
		unsigned n = support_stack(walked, 32);      \
                                                             \
		compare(support_site(), walked, n);          \
		__asm__ volatile("# " #name ::: "memory");   \
	}
WRAPPER(leaf)
WRAPPER(wrapper)

static uint64_t path; /* four bits a level: which call */

#define CALL(i, f) case i: f; __asm__ volatile("# " #i ::: "memory"); break
#define SIXTEEN_CALLS(f)                                                  \
	switch (path & 15) {                                              \
	CALL(0, f); CALL(1, f); CALL(2, f); CALL(3, f); CALL(4, f);       \
	CALL(5, f); CALL(6, f); CALL(7, f); CALL(8, f); CALL(9, f);       \
	CALL(10, f); CALL(11, f); CALL(12, f); CALL(13, f); CALL(14, f);  \
	CALL(15, f);                                                      \
	}

static NOINLINE void recurse(int depth)
{
	if (!depth) {
		leaf();
		STAY();
		return;
	}
	path >>= 4;
	SIXTEEN_CALLS(recurse(depth - 1));
}

static NOINLINE void third(void) { path >>= 4; SIXTEEN_CALLS(wrapper()); }
static NOINLINE void second(void) { path >>= 4; SIXTEEN_CALLS(third()); }
static NOINLINE void first(void) { SIXTEEN_CALLS(second()); }

int main(int argc, char **argv)
{
	uint64_t rng = 1;
	unsigned before, made;

	frames = argc > 1 ? (unsigned)atoi(argv[1]) : 8;
	leaf();
	before = support_sites();
	for (int i = 0; i < 200000; i++) {
		rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
		path = rng;
		recurse(10);
	}
	made = support_sites() - before;
	printf("recursion %u\n", made);

	longest = 0;
	before = support_sites();
	for (uint64_t i = 0; i < 16 * 16 * 16; i++) {
		if (i == 1024) {
			printf("longest %u\n", longest);
			longest = 0;
		}
		path = i;
		first();
	}
	printf("callers %u\n", support_sites() - before);
	return 0;
}
