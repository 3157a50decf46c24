/* A sequence of calls read from standard input, each answer checked against a
 * model: alignment, size, contents, zeros, and that no two objects overlap.
 * Under the agent the answers of malloc_usable_size are exact, and a freed
 * object reads as its fill. Prints the number of calls.
 *
 * A call is four bytes: what, which of 64 objects, and 16 bits from which its
 * size and alignment follow. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OBJECTS 64

struct object {
	uint8_t *bytes;
	size_t size;
	uint8_t seed;
};

static struct object live[OBJECTS];
static unsigned long calls;
static int exact; /* runs under the agent */

static void fail(const char *what, const struct object *o)
{
	fprintf(stderr, "model: call %lu: %s: %p of %zu bytes\n", calls, what, (void *)o->bytes, o->size);
	_Exit(3);
}

/* Small sizes densely, large ones at the edges of powers of two. */
static size_t size_of(unsigned bits)
{
	unsigned power = bits >> 12;

	if (power < 10)
		return bits & 0x7ff;
	return ((size_t)1 << (power + 6)) + (bits & 0xfff) - 2048;
}

static void judge(const struct object *o, size_t align)
{
	size_t usable = malloc_usable_size(o->bytes);
	int i;

	if ((uintptr_t)o->bytes % align)
		fail("alignment", o);
	if (usable < o->size || (exact && usable != o->size))
		fail("usable size", o);
	for (i = 0; i < OBJECTS; i++) {
		const struct object *other = &live[i];

		if (other != o && other->bytes && other->bytes < o->bytes + o->size &&
		    o->bytes < other->bytes + other->size)
			fail("overlaps another object", o);
	}
}

static void paint(struct object *o)
{
	size_t i;

	for (i = 0; i < o->size; i++)
		o->bytes[i] = (uint8_t)(o->seed + i);
}

static void verify(const struct object *o, size_t limit)
{
	size_t i;

	for (i = 0; i < o->size && i < limit; i++)
		if (o->bytes[i] != (uint8_t)(o->seed + i))
			fail("contents", o);
}

static void release(struct object *o)
{
	const volatile uint8_t *was = o->bytes;

	verify(o, SIZE_MAX);
	free(o->bytes);
	if (exact && o->bytes && o->size >= 8 && (was[7] != 0xdf || was[6] != 0x5d))
		fail("freed and not filled", o);
	memset(o, 0, sizeof(*o));
}

static void allocate(struct object *o, unsigned what, unsigned bits)
{
	size_t align = 16, i;
	void *p = NULL;

	o->size = size_of(bits);
	o->seed = (uint8_t)(bits * 7);
	switch (what) {
	case 0:
		p = calloc(o->size, 1);
		for (i = 0; p && i < o->size; i++)
			if (((uint8_t *)p)[i])
				fail("calloc", o);
		break;
	case 1:
		align = (size_t)8 << bits % 15;
		if (posix_memalign(&p, align, o->size))
			p = NULL;
		break;
	case 2:
		align = (size_t)16 << bits % 9;
		p = aligned_alloc(align, o->size);
		break;
	default:
		p = malloc(o->size);
	}
	o->bytes = p;
	if (!p)
		fail("no memory", o);
	judge(o, align);
	paint(o);
}

static void resize(struct object *o, unsigned bits)
{
	struct object before = *o;

	o->size = size_of(bits);
	o->bytes = realloc(o->bytes, o->size);
	if (before.bytes && !o->size) {
		if (o->bytes)
			fail("realloc to nothing", o);
		memset(o, 0, sizeof(*o));
		return;
	}
	if (!o->bytes)
		fail("no memory", &before);
	judge(o, 16);
	verify(o, before.size);
	paint(o);
}

static void impossible(const struct object *o)
{
	volatile size_t many = SIZE_MAX / 2;
	void *volatile p;

	errno = 0;
	p = malloc(many);
	if (p || errno != ENOMEM)
		fail("malloc of too much", o);
	errno = 0;
	p = reallocarray(o->bytes, many, 3);
	if (p || errno != ENOMEM)
		fail("reallocarray of too much", o);
	errno = 0;
	p = calloc(many, 3);
	if (p || errno != ENOMEM)
		fail("calloc of too much", o);
	if (posix_memalign((void **)&p, 24, 8) != EINVAL)
		fail("posix_memalign of a wrong alignment", o);
}

int main(int argc, char **argv)
{
	unsigned char c[4];
	int i;

	(void)argv;
	exact = argc > 1;
	for (; fread(c, 1, 4, stdin) == 4; calls++) {
		struct object *o = &live[c[1] % OBJECTS];
		unsigned bits = c[2] | (unsigned)c[3] << 8;

		verify(o, SIZE_MAX);
		if (c[0] % 16 == 15)
			impossible(o);
		else if (c[0] % 4 == 3)
			resize(o, bits);
		else if (o->bytes)
			release(o);
		else
			allocate(o, c[0] / 4 % 8, bits);
	}
	for (i = 0; i < OBJECTS; i++)
		release(&live[i]);
	printf("model: %lu calls\n", calls);
	return 0;
}
