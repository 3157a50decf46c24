// Programs that end themselves because of a condition.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP __attribute__((noinline))

struct queue { int count, limit; unsigned flags; char *name; };
static struct queue global = {7, 4, 6, "q"};
static int table[4] = {3, 1, -5, 2};
volatile int input = 2;

KEEP int lookup(int k) { return k > 100 ? k : -1; }
KEEP void fill(int *out) { *out = input + 40; }
KEEP char *find(int k) { return k > 100 ? "x" : NULL; }

KEEP void returned(void) { int at = lookup(input); assert(at >= 0); printf("%d\n", at); }
KEEP void member(struct queue *q) { assert(q->count <= q->limit); q->count++; }
KEEP void pointer(void) { char *found = find(input); if (!found) abort(); puts(found); }
KEEP void element(void) { int v = table[input]; if (v < 0) abort(); printf("%d\n", v); }
KEEP void masked(struct queue *q) { assert((q->flags & 8) != 0); q->count--; }
KEEP void filled(void) { int v; fill(&v); assert(v == 41); printf("%d\n", v); }
KEEP void second(int a, int b) { assert(a > 0 && b > 0); printf("%d %d\n", a, b); }
KEEP void die(const char *why) { fputs(why, stderr); abort(); }
KEEP void wrapped(int n) { if (n > 10) die("too many\n"); printf("%d\n", n); }
KEEP void kept(int n) { int ok = n < 10; input++; if (!ok) abort(); printf("%d\n", n); }
KEEP void counted(int n) { assert(n++ < 11); printf("%d\n", n); }
KEEP void real(double d) { assert(d > 1.5); printf("%f\n", d); }
KEEP void always(void) { abort(); }
KEEP void several(int n) { switch (n) { case 1: input = 3; break; case 5: case 9: case 14: abort(); default: input = 4; } }

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "";
	if (!strcmp(which, "returned")) returned();
	if (!strcmp(which, "member")) member(&global);
	if (!strcmp(which, "pointer")) pointer();
	if (!strcmp(which, "element")) element();
	if (!strcmp(which, "masked")) masked(&global);
	if (!strcmp(which, "filled")) filled();
	if (!strcmp(which, "second")) second(input, input - 2);
	if (!strcmp(which, "wrapped")) wrapped(input + 9);
	if (!strcmp(which, "kept")) kept(input + 10);
	if (!strcmp(which, "counted")) counted(input + 10);
	if (!strcmp(which, "real")) real(input - 1.0);
	if (!strcmp(which, "always")) always();
	if (!strcmp(which, "several")) several(input + 7);
	return 0;
}
