/* Crashes that are no smashed stacks, each with an array of text in the frame that failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noclone))

static volatile int sink;
static void (*volatile nowhere)(void);
static void (*volatile wild)(void) = (void (*)(void))0x6161616161616161;
static void (*volatile unmapped)(void) = (void (*)(void))0x616161616161;

APART static void fill(char *to, int n) { memset(to, 'a', n); }

APART static int null_call(void)
{
	char label[64];
	fill(label, 64);
	nowhere();
	return sink += label[3];
}

APART static int wild_call(void)
{
	char label[64];
	fill(label, 64);
	wild();
	return sink += label[3];
}

APART static int unmapped_call(void)
{
	char label[64];
	fill(label, 64);
	unmapped();
	return sink += label[3];
}

APART static int tail_jump(void)
{
	char label[64];
	fill(label, 64);
	sink += label[3];
	((void (*)(int))wild)(sink);
	return 0;
}

struct handler { char name[16]; void (*run)(void); };

/* The text goes over a pointer to a function, and not over a word of the frame. */
APART static int over_pointer(void)
{
	struct handler h[2];
	memset(h, 0, sizeof h);
	fill(h[0].name, 22);
	h[0].run();
	return sink += h[1].name[0];
}

struct shape { const struct methods *methods; };
struct methods { int (*area)(struct shape *); };

APART static int bad_methods(void)
{
	char label[64];
	struct shape s = {(const struct methods *)0x6161616161616161};
	fill(label, 64);
	sink += label[1];
	return s.methods->area(&s);
}

APART static int exhausted(int n)
{
	char label[256];
	fill(label, 256);
	return label[n % 256] + exhausted(n + 1) + label[(n + 7) % 256];
}

APART static int start_exhausted(void) { return exhausted(1); }

/* A return to a bad address that is no array's contents. */
APART static int bad_return(void)
{
	char label[64];
	fill(label, 60);
	memset(label + 60, 0, 4);
	sink += label[1];
	((void *volatile *)__builtin_frame_address(0))[1] = (void *)0x1234123412341234;
	return 0;
}

APART static int bad_return_text(void)
{
	char label[64];
	fill(label, 60);
	memset(label + 60, 0, 4);
	sink += label[1];
	((void *volatile *)__builtin_frame_address(0))[1] = (void *)0x6161616161616161;
	return 0;
}

APART static int null_read(void)
{
	char label[64];
	int *volatile p = 0;
	fill(label, 64);
	return label[2] + *p;
}

static const struct { const char *name; int (*call)(void); } table[] = {
	{"null_call", null_call}, {"wild_call", wild_call}, {"unmapped_call", unmapped_call}, {"tail_jump", tail_jump}, {"over_pointer", over_pointer},
	{"bad_methods", bad_methods}, {"exhausted", start_exhausted}, {"bad_return", bad_return}, {"bad_return_text", bad_return_text}, {"null_read", null_read},
};

int main(int argc, char **argv)
{
	for (unsigned i = 0; argc > 1 && i < sizeof table / sizeof *table; i++)
		if (!strcmp(table[i].name, argv[1]))
			sink += table[i].call();
	return 0;
}
