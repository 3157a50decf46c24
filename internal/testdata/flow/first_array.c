/* A number is read past the last element of an array that is the first member of its struct. Other code looks at the same object as bytes. */
// ENDS: SIGSEGV
// WAY: outside in rate_of
#include <stdio.h>
#include <stdlib.h>

struct rates {
	int of[6];
	int checksum;
	long spare[2];
};

int wanted = 6;
char pages[64][1 << 20];

__attribute__((noinline)) static int rate_of(const struct rates *r, int n) { return r->of[n]; }

__attribute__((noinline)) static int bytes(const struct rates *r)
{
	const unsigned char *p = (const unsigned char *)r;
	int sum = 0;

	for (size_t i = 0; i < sizeof(*r); i++)
		sum += p[i];
	return sum;
}

int main(void)
{
	struct rates *r = calloc(1, sizeof(*r));

	for (int i = 0; i < 6; i++)
		r->of[i] = i + 3;
	r->checksum = 7654321;
	printf("%d\n", bytes(r));
	printf("%d\n", pages[rate_of(r, wanted)][0]);
	free(r);
	return 0;
}
