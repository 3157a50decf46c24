/* Threads that allocate, resize, check and free each other's objects, run under
 * the agent: every byte of every object must be what its owner wrote.
 *
 *	stress THREADS ROUNDS [exact]
 *
 * exact: malloc_usable_size answers the requested size, as no one's but the
 * agent's does; so a run without it fails.
 *
 * The threads of a round end after it, so heaps change hands. The last line
 * tells how many steps were made, so that a test knows that it ran. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 4096
#define STEPS 20000 /* a thread and round */

struct object {
	size_t size;
	uint8_t *bytes;
	uint8_t seed;
};

/* Objects on their way from one thread to another. */
static struct object mailbox[SLOTS];
static pthread_mutex_t mailbox_lock[SLOTS];
static unsigned long total;
static int exact;

static void die(const char *what, const struct object *o)
{
	fprintf(stderr, "stress: %s: %p of %zu bytes\n", what, (void *)o->bytes, o->size);
	_Exit(3);
}

static uint8_t byte_at(const struct object *o, size_t i)
{
	return (uint8_t)(o->seed + i * 31);
}

/* All of a small object, both ends and some places of a large one. */
static size_t step(size_t size)
{
	return size < 2048 ? 1 : size / 512;
}

static void paint(struct object *o, size_t from)
{
	size_t i;

	for (i = 0; i < o->size; i += step(o->size))
		if (i >= from)
			o->bytes[i] = byte_at(o, i);
	if (o->size)
		o->bytes[o->size - 1] = byte_at(o, o->size - 1);
}

static void verify(const struct object *o)
{
	size_t i, usable;

	for (i = 0; i < o->size; i += step(o->size))
		if (o->bytes[i] != byte_at(o, i))
			die("contents changed", o);
	if (o->size && o->bytes[o->size - 1] != byte_at(o, o->size - 1))
		die("last byte changed", o);
	if (!o->bytes)
		return;
	usable = malloc_usable_size(o->bytes);
	if (usable < o->size || (exact && usable != o->size))
		die("size changed", o);
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static size_t any_size(uint64_t *state)
{
	uint64_t r = next(state) % 1000;

	if (r < 700)
		return next(state) % 300;
	if (r < 950)
		return next(state) % 5000;
	if (r < 998)
		return next(state) % 150000;
	return next(state) % 3000000;
}

static void create(struct object *o, uint64_t *state)
{
	static const size_t aligns[] = { 8, 16, 32, 64, 256, 4096, 8192, 1 << 17 };
	size_t align = aligns[next(state) % 8], i;
	void *p = NULL;

	o->size = any_size(state);
	o->seed = (uint8_t)next(state);
	switch (next(state) % 8) {
	case 0:
		if (posix_memalign(&p, align, o->size) || (uintptr_t)p % align)
			die("posix_memalign", o);
		break;
	case 1:
		p = calloc(1, o->size);
		for (i = 0; p && i < o->size; i++)
			if (((uint8_t *)p)[i])
				die("calloc gave used memory", o);
		break;
	default:
		p = malloc(o->size);
	}
	o->bytes = p;
	if (!p || (uintptr_t)p % 16 > 8)
		die("no memory", o);
	paint(o, 0);
}

static void resize(struct object *o, uint64_t *state)
{
	struct object grown = *o;
	size_t i, kept;

	grown.size = 1 + any_size(state);
	kept = grown.size < o->size ? grown.size : o->size;
	grown.bytes = realloc(o->bytes, grown.size);
	if (!grown.bytes)
		die("no memory", &grown);
	for (i = 0; i < kept; i += step(o->size))
		if (grown.bytes[i] != byte_at(o, i))
			die("realloc lost contents", o);
	paint(&grown, 0);
	*o = grown;
}

static void *work(void *argument)
{
	uint64_t state = 88172645463325252ull + (uintptr_t)argument * 1234567;
	struct object own[64];
	int i;

	memset(own, 0, sizeof(own));
	for (i = 0; i < STEPS; i++) {
		struct object *o = &own[next(&state) % 64], swap;
		size_t place = next(&state) % SLOTS;

		verify(o);
		switch (next(&state) % 4) {
		case 0:
			resize(o, &state);
			break;
		case 1:
			pthread_mutex_lock(&mailbox_lock[place]);
			swap = mailbox[place];
			mailbox[place] = *o;
			pthread_mutex_unlock(&mailbox_lock[place]);
			*o = swap;
			break;
		default:
			free(o->bytes);
			create(o, &state);
		}
	}
	for (i = 0; i < 64; i++) {
		verify(&own[i]);
		free(own[i].bytes);
	}
	__atomic_fetch_add(&total, STEPS, __ATOMIC_RELAXED);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 8, rounds = argc > 2 ? atoi(argv[2]) : 1, i, r;
	pthread_t *t = calloc((size_t)threads, sizeof(*t));

	exact = argc > 3;
	for (i = 0; i < SLOTS; i++)
		pthread_mutex_init(&mailbox_lock[i], NULL);
	for (r = 0; r < rounds; r++) {
		for (i = 0; i < threads; i++)
			if (pthread_create(&t[i], NULL, work, (void *)(uintptr_t)(r * threads + i)))
				return 2;
		for (i = 0; i < threads; i++)
			pthread_join(t[i], NULL);
	}
	for (i = 0; i < SLOTS; i++) {
		verify(&mailbox[i]);
		free(mailbox[i].bytes);
	}
	free(t);
	printf("stress: %lu steps\n", total);
	return 0;
}
