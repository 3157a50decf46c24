/* A reader of a header refuses the newest version, as its comparison leaves the limit out. */
// ENDS: exit 2
// FAILS: pack 5 3
// PASSES: pack 4 3 | pack 1 10 | pack 3 0
// REFUSED: pack 9 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct header { char magic[4]; int version, count; };

__attribute__((noinline)) static const char *check(const struct header *h)
{
	if (memcmp(h->magic, "pack", 4))
		return "bad magic";
#ifdef FIXED
	if (h->version <= 5)
#else
	if (h->version < 5) // DIVERGES
#endif
		return h->count < 0 ? "bad count" : NULL;
	return "unknown version";
}

int main(int argc, char **argv)
{
	struct header h;
	if (argc < 4)
		return 3;
	memcpy(h.magic, argv[1], 4);
	h.version = atoi(argv[2]);
	h.count = atoi(argv[3]);
	const char *why = check(&h);
	if (why) {
		fprintf(stderr, "%s\n", why);
		return 2;
	}
	puts("read");
	return 0;
}
