// Plain accesses of every kind that compilers tell apart.
// FLAGS: -Wno-unused-result -lm
#include <complex.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bits {
	unsigned low : 3, middle : 11, high : 18;
	long wide : 40;
};

struct __attribute__((packed)) packed {
	char c;
	short s;
	int i;
	long l;
	__int128 w;
	double d;
};

struct large {
	long words[33];
};

typedef int vector __attribute__((vector_size(16)));

static volatile int count;
static struct bits bits;
static struct packed packed;
static struct large large, other;
static vector vectors[3] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } };
static long double extended = 3;
static double _Complex complex_number = 1 + 2 * I;
static __int128 wide = 5;
static __thread long own = 7;
static jmp_buf environment;
static unsigned char page[64];

static struct large __attribute__((noinline)) by_value(struct large x, int n)
{
	x.words[n] += n;
	return x;
}

static void __attribute__((noinline)) leave(int n)
{
	count += n;
	longjmp(environment, n);
}

static void __attribute__((noinline)) on_stack(char *p, int n)
{
	char room[n];

	memset(room, n, (size_t)n);
	memcpy(p, room, (size_t)n);
	memmove(p + 1, p, (size_t)n - 1);
}

static uint64_t sum(const void *p, size_t n)
{
	const unsigned char *bytes = p;
	uint64_t s = 0;

	while (n--)
		s = s * 31 + *bytes++;
	return s;
}

int main(int argc, char **argv)
{
	volatile long local = argc;

	(void)argv;
	bits.low = 5, bits.middle += 1000, bits.high ^= 0x2aaaa, bits.wide -= 12345678901;
	packed.c++, packed.s -= 2, packed.i += 3, packed.l ^= 0x1122334455667788, packed.w += wide << 90, packed.d += 0.5;
	vectors[2] = vectors[0] * vectors[1];
	extended *= 1.25L;
	complex_number *= complex_number;
	wide *= wide + local;
	large = by_value(large, 7);
	other = large;
	own += local;
	on_stack((char *)page, 40);
	memcpy(page + 41, "fixed", 6);
	if (!setjmp(environment))
		leave(3);
	strcat(strcpy((char *)page + 50, "string"), "s");
	printf("%lx %lx %lx %lx %lx %ld %d %d %d %.3f %.3f %ld %d\n", sum(&bits, 16), sum(&packed, sizeof(packed)), sum(&large, sizeof(large)),
	       sum(&other, sizeof(other)), sum(page, sizeof(page)), (long)(wide >> 3), vectors[2][0], vectors[2][3], count, (double)extended,
	       creal(complex_number), own, (int)bits.middle);
	return 0;
}
