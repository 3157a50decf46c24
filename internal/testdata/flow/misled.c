/* A part of a pointer is overwritten, and what it leads to now has no value. */
// ENDS: SIGSEGV
// FLAGS: -O1
// WAY: pieces in name
#include <stdio.h>

struct part {
	long weight, spare[6];
	void (*use)(struct part *);
};
struct box {
	char name[8];
	struct part *content;
};
int length = 9;
struct part parts[4] __attribute__((aligned(256)));
struct box box;

static void weigh(struct part *p) { printf("%ld\n", p->weight); }

__attribute__((noinline)) static void name(struct box *b)
{
	char *to = b->name;

	for (int i = 0; i < length; i++)
		to[i] = 16;
}

__attribute__((noinline)) static void use(struct box *b) { b->content->use(b->content); }

int main(void)
{
	box.content = parts;
	for (int i = 0; i < 4; i++) {
		parts[i].weight = i;
		parts[i].use = weigh;
	}
	name(&box);
	use(&box);
	return 0;
}
