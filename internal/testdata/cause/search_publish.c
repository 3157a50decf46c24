// A message whose flag is set before its text, read by a thread that spins on the
// flag: what orders them is memory alone.
// CAUSE kind=order-violation variable=mail.text* pattern=RW
// FAILS signal=SIGABRT says="an empty message"
// RUNS fail: 20000
// RUNS pass: 0
// SEARCH: the flag and the text are ordered by memory alone
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
	int full;
	long text;
} mail;

static unsigned long rounds;
static unsigned long empty;

/* What a text is worth: never 0. */
static long weigh(long text)
{
	unsigned long h = (unsigned long)text;

	for (int i = 0; i < 40; i++)
		h = h * 6364136223846793005UL + 1442695040888963407UL;
	return (long)(h | 1);
}

static void post(long text)
{
#ifdef FIXED
	__atomic_store_n(&mail.text, weigh(text), __ATOMIC_RELAXED);
	__atomic_store_n(&mail.full, 1, __ATOMIC_RELEASE);
#else
	__atomic_store_n(&mail.full, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&mail.text, weigh(text), __ATOMIC_RELAXED); // BUG 2
#endif
}

static void *receive(void *unused)
{
	(void)unused;
	for (unsigned long i = 0; i < rounds; i++) {
		while (!__atomic_load_n(&mail.full, __ATOMIC_ACQUIRE))
			;
		if (!__atomic_load_n(&mail.text, __ATOMIC_RELAXED)) // BUG 1
			empty++;
		while (!__atomic_load_n(&mail.text, __ATOMIC_RELAXED))
			;
		__atomic_store_n(&mail.text, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&mail.full, 0, __ATOMIC_RELEASE);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	pthread_create(&thread, NULL, receive, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		post((long)i + 1);
		while (__atomic_load_n(&mail.full, __ATOMIC_ACQUIRE))
			;
	}
	pthread_join(thread, NULL);
	if (empty) {
		fprintf(stderr, "an empty message, %lu times\n", empty);
		abort();
	}
	return 0;
}
