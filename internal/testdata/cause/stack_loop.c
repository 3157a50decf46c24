// A path that is taken apart: as many parts as there are slashes, into a table for
// eight of them.
// CAUSE kind=stack-smashing
// FAILS signal=SIGABRT says="stack smashing"
// RUNS fail: /usr/share/doc/a/b/c/d/e/f/g/h
// RUNS pass: /usr/share/doc/a/b
// FLAGS: -fstack-protector-strong
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 8 };

static size_t deepest;
static unsigned long names;

struct part {
	unsigned short start, length;
};

static unsigned long digest(const char *path, const struct part *p)
{
	unsigned long h = p->length;

	for (unsigned i = 0; i < p->length; i++)
		h = h * 131 + (unsigned char)path[p->start + i];
	return h;
}

__attribute__((noinline)) static size_t split(const char *path)
{
	struct part parts[PARTS];
	size_t count = 0, at = 0, length = strlen(path);

	while (at < length) {
		size_t n = strcspn(path + at, "/");

#ifdef FIXED
		if (count == PARTS)
			break;
#endif
		if (n) {
			parts[count] = (struct part){ (unsigned short)at, (unsigned short)n }; // BUG
			count++;
		}
		at += n + 1;
	}
	for (size_t i = 0; i < count && i < PARTS; i++)
		names ^= digest(path, &parts[i]);
	return count;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		size_t depth = split(argv[i]);

		if (depth > deepest)
			deepest = depth;
	}
	printf("%zu deep, names %lx\n", deepest, names);
	return 0;
}
