/* What points cost: nanoseconds of computing for each of a few things a program does, printed
 * one a line as "name value". Built by bench/points with and without points. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SORTED 100000

static long words[1024];
static atomic_long atom;
static unsigned text[SORTED];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static long __attribute__((noinline)) call(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n;
}

/* A call of a leaf without accesses has no point; this one reads. */
static long __attribute__((noinline)) read_one(const long *p)
{
	return *p;
}

static unsigned sift(unsigned *a, long from, long to)
{
	while (2 * from + 1 < to) {
		long child = 2 * from + 1;
		unsigned held = a[from];

		if (child + 1 < to && a[child + 1] > a[child])
			child++;
		if (held >= a[child])
			break;
		a[from] = a[child];
		a[child] = held;
		from = child;
	}
	return a[0];
}

/* A piece of ordinary code: heapsort. */
static double sort(void)
{
	unsigned seed = 1;
	double start;

	for (long i = 0; i < SORTED; i++)
		text[i] = seed = seed * 1664525 + 1013904223;
	start = now();
	for (long i = SORTED / 2; i--;)
		sift(text, i, SORTED);
	for (long i = SORTED; --i > 0;) {
		unsigned top = text[0];

		text[0] = text[i];
		text[i] = top;
		sift(text, 0, i);
	}
	return (now() - start) / SORTED;
}

#define MEASURE(name, does) \
	do { \
		double start = now(); \
		for (long i = 0; i < n; i++) { \
			does; \
		} \
		printf("%s %.3f\n", name, (now() - start) / (double)n); \
	} while (0)

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 20000000, sum = 0;

	MEASURE("write", words[i & 1023] = i);
	MEASURE("read", sum += *(volatile long *)&words[i & 1023]);
	MEASURE("call", sum += call(i));
	MEASURE("call-read", sum += read_one(&words[i & 1023]));
	MEASURE("atomic-load", sum += atomic_load_explicit(&atom, memory_order_acquire));
	MEASURE("atomic-add", atomic_fetch_add(&atom, 1));
	printf("sort %.3f\n", sort());
	return sum == 42;
}
