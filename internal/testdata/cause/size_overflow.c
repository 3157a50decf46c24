// A picture whose size in bytes is reckoned in 32 bits: of one that is wide and high
// enough little is left.
// CAUSE kind=heap-overflow
// FAILS signal=SIGABRT says="overflow"
// RUNS fail: 17 63161284
// RUNS pass: 64 3
#include <stdio.h>
#include <stdlib.h>

struct picture {
	unsigned width, height;
	unsigned *points;
};

static unsigned long drawn;

static int make(struct picture *p, unsigned width, unsigned height)
{
	p->width = width;
	p->height = height;
#ifdef FIXED
	if ((unsigned long)width * height > 1u << 24)
		return 0;
#endif
	p->points = malloc(width * height * (unsigned)sizeof(*p->points)); // OBJECT
	return p->points != NULL;
}

__attribute__((noinline)) static unsigned colour(unsigned x, unsigned y)
{
	return 0xff000000u | (x ^ y) << 8 | (x & 255);
}

/* A frame of one point. */
static void frame(struct picture *p)
{
	for (unsigned x = 0; x < p->width; x++)
		p->points[x] = colour(x, 0); // BUG
	drawn += p->width;
}

static unsigned sum(const struct picture *p)
{
	unsigned s = 0;

	for (unsigned x = 0; x < p->width && x < 16; x++)
		s += p->points[x];
	return s;
}

int main(int argc, char **argv)
{
	struct picture p;

	if (!make(&p, argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 64, argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 3))
		return 0;
	frame(&p);
	printf("%u, %lu drawn\n", sum(&p), drawn);
	free(p.points);
	return 0;
}
