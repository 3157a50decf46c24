/* A member of one element is never given a value; what decides is one bit of it. */
// ENDS: exit 2
// DECIDED: unset in allowed
#include <stdio.h>
#include <stdlib.h>

struct limit {
	int most;
	unsigned flags; // BUG: not stored for the second limit
};

struct options {
	int level;
	struct limit limits[3];
};

__attribute__((noinline)) static struct options *read_options(const char *text)
{
	struct options *o = malloc(sizeof *o);
	o->level = atoi(text);
	for (int i = 0; i < 3; i++) {
		o->limits[i].most = 10 * i;
		if (i != 1)
			o->limits[i].flags = 4;
	}
	return o;
}

__attribute__((noinline)) static int allowed(const struct options *o)
{
	return (o->limits[o->level].flags >> 2 & 1) == 1;
}

int main(void)
{
	struct options *o = read_options("1");
	if (!allowed(o)) {
		fprintf(stderr, "level %d is not allowed\n", o->level);
		return 2;
	}
	return 0;
}
