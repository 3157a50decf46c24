// A picture with a palette in a file. The number of a colour is two bytes there,
// and the palette has as many colours as its header says.
// CAUSE kind=value-from-input
// FAILS signal=SIGSEGV says="fault at 0x"
// RUNS: {file}
// FILE: P4
// FILE: abcdefgh
// FILE fail: AAABACzzADAA
// FILE pass: AAABACADADAA
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 4096 };

struct colour {
	unsigned char light, tone;
	char pad[BLOCK - 2]; /* its pattern, not used here */
};

struct picture {
	unsigned colours;
	struct colour *palette;
	unsigned short *points;
	unsigned count;
};

static char contents[512];
static long light;

static size_t load(const char *name)
{
	int fd = open(name, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, contents, sizeof(contents) - 1); // BUG
	close(fd);
	return n > 0 ? (size_t)n : 0;
}

static void decode(struct picture *p)
{
	const char *colours = strchr(contents, '\n') + 1, *points = strchr(colours, '\n') + 1;

	p->colours = (unsigned)(contents[1] - '0');
	p->palette = calloc(p->colours, sizeof(*p->palette));
	for (unsigned i = 0; i < p->colours; i++) {
		p->palette[i].light = (unsigned char)(colours[2 * i] - 'a');
		p->palette[i].tone = (unsigned char)(colours[2 * i + 1] - 'a');
	}
	p->count = (unsigned)strcspn(points, "\n") / 2;
	p->points = calloc(p->count, sizeof(*p->points));
	for (unsigned i = 0; i < p->count; i++)
		p->points[i] = (unsigned short)((points[2 * i] - 'A') << 8 | (points[2 * i + 1] - 'A')); // HOP 1
}

static void render(const struct picture *p)
{
	for (unsigned i = 0; i < p->count; i++) {
		unsigned number = p->points[i];

#ifdef FIXED
		if (number >= p->colours)
			number = 0;
#endif
		light += p->palette[number].light; // HOP 2
	}
}

int main(int argc, char **argv)
{
	struct picture p;

	if (argc < 2 || load(argv[1]) < 4)
		return 1;
	decode(&p);
	render(&p);
	printf("%ld\n", light);
	return 0;
}
