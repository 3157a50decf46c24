/* The interface's edges: sizes near the limits, nothing as a size or pointer,
 * alignments, and errno. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>

#include "support_agent.h"

/* The compiler knows what the standard says of these functions, and leaves
 * out calls whose results it can tell. */
static volatile size_t zero, one = 1;

#define FAILS(call, with)                                        \
	do {                                                     \
		errno = 0;                                       \
		CHECK(!(call));                                  \
		CHECK(errno == (with));                          \
	} while (0)

static void too_large(void)
{
	static const size_t sizes[] = {
		SIZE_MAX, SIZE_MAX - 7, SIZE_MAX - 8, SIZE_MAX - 4096, SIZE_MAX - 65536,
		(size_t)PTRDIFF_MAX + 1, PTRDIFF_MAX, PTRDIFF_MAX - 4096, (size_t)1 << 48, (size_t)1 << 41,
	};
	char *p = malloc(10), *q = malloc(300000);
	void *out = &out;

	strcpy(p, "contents");
	strcpy(q, "contents");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t size = sizes[i] + zero;

		FAILS(malloc(size), ENOMEM);
		FAILS(calloc(1, size), ENOMEM);
		FAILS(calloc(size, 1), ENOMEM);
		FAILS(realloc(p, size), ENOMEM);
		FAILS(realloc(q, size), ENOMEM);
		FAILS(realloc(NULL, size), ENOMEM);
		FAILS(reallocarray(p, size, 1), ENOMEM);
		FAILS(memalign(64, size), ENOMEM);
		FAILS(aligned_alloc(4096, size), ENOMEM);
		FAILS(aligned_alloc(((size_t)1 << 40) + zero, size), ENOMEM);
		FAILS(valloc(size), ENOMEM);
		FAILS(pvalloc(size), ENOMEM);
		errno = 7;
		CHECK(posix_memalign(&out, 64, size) == ENOMEM && errno == 7 && out == &out);
	}
	FAILS(calloc(SIZE_MAX / 2 + zero, 3), ENOMEM);
	FAILS(calloc((size_t)1 << 32, ((size_t)1 << 32) + zero), ENOMEM);
	FAILS(reallocarray(p, ((size_t)1 << 32) + zero, (size_t)1 << 32), ENOMEM);
	FAILS(reallocarray(NULL, SIZE_MAX / 8 + 1 + zero, 8), ENOMEM);
	CHECK(!strcmp(p, "contents") && !strcmp(q, "contents"));
	free(p);
	free(q);
}

static void nothing(void)
{
	void *p[100], *out;

	for (unsigned i = 0; i < 100; i++) {
		switch (i % 5) {
		case 0: p[i] = malloc(zero); break;
		case 1: p[i] = calloc(zero, i); break;
		case 2: p[i] = realloc(NULL, zero); break;
		case 3: p[i] = aligned_alloc(64, zero); break;
		case 4: CHECK(!posix_memalign(&p[i], 4096, zero)); break;
		}
		CHECK(p[i] && malloc_usable_size(p[i]) == 0);
		for (unsigned k = 0; k < i; k++)
			CHECK(p[i] != p[k]);
	}
	for (unsigned i = 0; i < 100; i++)
		free(p[i]);
	free(NULL);
	CHECK(malloc_usable_size(NULL) == 0);
	CHECK(!realloc(malloc(one), zero)); /* glibc: freed */
	CHECK(!reallocarray(malloc(one), zero, 8));
	out = realloc(NULL, 40 + zero);
	CHECK(out && malloc_usable_size(out) == 40);
	free(out);
}

static void alignments(void)
{
	void *p[200];
	size_t align;
	unsigned n = 0;

	for (align = 1; align <= (size_t)1 << 24; align *= 2)
		for (size_t size = 1; size <= 100000; size = size * 17 + 3) {
			CHECK((p[n] = memalign(align + zero, size)));
			CHECK((uintptr_t)p[n] % align == 0 && (uintptr_t)p[n] % 16 == 0);
			CHECK(malloc_usable_size(p[n]) == size);
			memset(p[n++], 1, size);
		}
	while (n)
		free(p[--n]);
	p[0] = memalign(24 + zero, 10); /* rounded up, as glibc does */
	CHECK((uintptr_t)p[0] % 32 == 0);
	free(p[0]);
	for (size_t bad = 0; bad < 64; bad += bad < 4 ? 1 : 12)
		if (bad < 8 || (bad & (bad - 1)))
			CHECK(posix_memalign(&p[0], bad + zero, 8) == EINVAL);
	FAILS(memalign(((size_t)1 << 63) + 1 + zero, 8), EINVAL);
	p[0] = valloc(1 + zero);
	p[1] = pvalloc(1 + zero);
	CHECK(p[0] && p[1] && malloc_usable_size(p[1]) == 4096);
	CHECK(((uintptr_t)p[0] | (uintptr_t)p[1]) % 4096 == 0);
	free(p[0]);
	free(p[1]);
}

/* free leaves errno alone (POSIX 2024), on all of its ways. */
static void errno_is_kept(void)
{
	for (size_t size = 1; size < 80000000; size = size * 3 / 2 + 1)
		for (unsigned i = 0; i < (size < 100000 ? 200 : 2); i++) {
			void *p = malloc(size + zero);

			CHECK(p);
			errno = 77;
			free(p);
			CHECK(errno == 77);
			p = malloc(size + zero);
			CHECK(errno == 77);
			p = realloc(p, size + 100);
			CHECK(errno == 77);
			free(p);
		}
}

/* A resized object keeps its contents through all kinds of memory. */
static void resizes(void)
{
	size_t size = 1, old;
	unsigned char *p = malloc(1 + zero);

	p[0] = 0;
	for (unsigned i = 0; i < 120; i++) {
		old = size;
		size = i < 60 ? size * 4 / 3 + 1 : size * 3 / 4 + 1;
		p = realloc(p, size);
		CHECK(p && malloc_usable_size(p) == size);
		for (size_t k = 0; k < old && k < size; k += 1 + old / 1000)
			CHECK(p[k] == (unsigned char)(k * 31));
		for (size_t k = 0; k < size; k++)
			p[k] = (unsigned char)(k * 31);
	}
	free(p);
}

int main(void)
{
	agent_root();
	too_large();
	nothing();
	alignments();
	errno_is_kept();
	resizes();
	CHECK(malloc_trim(0) == 0 || malloc_trim(0) == 0);
	CHECK(mallinfo2().arena > 0 && mallopt(M_MMAP_THRESHOLD, 1 << 20));
	CHECK(agent_root()->error_count == 0);
	puts("ok");
	return 0;
}
