// A list of free buffers without a lock: between the look at its head and the
// exchange the same buffer was taken, and given back with another one after it.
// CAUSE kind=atomicity-violation variable=head pattern=RWW|RWR
// FAILS signal=SIGABRT says="has two owners"
// RUNS fail: 5 20
// RUNS pass: 5 130
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BUFFERS = 4 };

struct buffer {
	uint32_t next; /* number of the next one, from 1; 0: none */
	int owner;
};

static struct buffer buffers[BUFFERS + 1];
static uint64_t head; /* with a version in the upper half in the twin */

struct user {
	int id, arrives, slow;
};

/* What is taken is written down, on a disk that may be busy. */
static void trace(const struct user *u, uint32_t number)
{
	char line[60];
	int n = snprintf(line, sizeof(line), "user %d takes %u\n", u->id, number);

	write(1, line, (size_t)n);
	if (u->slow)
		usleep((useconds_t)u->slow * 1000);
}

__attribute__((noinline)) static uint64_t successor(uint64_t old, uint32_t number)
{
#ifdef FIXED
	return ((old >> 32) + 1) << 32 | number;
#else
	return number;
#endif
}

static uint32_t take(const struct user *u)
{
	for (;;) {
		uint64_t old = __atomic_load_n(&head, __ATOMIC_ACQUIRE); // BUG 1
		uint32_t number = (uint32_t)old, next = buffers[number].next;

		if (!number)
			return 0;
		trace(u, number);
		if (!__atomic_compare_exchange_n(&head, &old, successor(old, next), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) // BUG 3
			continue;
		if (buffers[number].owner) {
			fprintf(stderr, "buffer %u has two owners\n", number);
			abort();
		}
		buffers[number].owner = u->id;
		return number;
	}
}

static void give(uint32_t number)
{
	uint64_t old = __atomic_load_n(&head, __ATOMIC_ACQUIRE);

	buffers[number].owner = 0;
	do
		buffers[number].next = (uint32_t)old;
	while (!__atomic_compare_exchange_n(&head, &old, successor(old, number), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)); // BUG 2
}

/* Takes one and then another, as a message has two parts. */
static void *receive(void *arg)
{
	const struct user *u = arg;
	uint32_t first, second;

	usleep((useconds_t)u->arrives * 1000);
	first = take(u);
	second = take(u);
	give(first);
	usleep(100000); /* the second part is still in use */
	if (second)
		give(second);
	return NULL;
}

int main(int argc, char **argv)
{
	struct user users[] = { { 1, argc > 1 ? atoi(argv[1]) : 5, 40 }, { 2, argc > 2 ? atoi(argv[2]) : 130, 0 } };
	pthread_t threads[2];

	for (uint32_t i = BUFFERS; i; i--)
		give(i);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, receive, &users[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
