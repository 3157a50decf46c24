// LOST 4 0: objects that only a pointer to their middle leads to are not lost, others are.
#include "leaks.h"
struct hook { struct hook *next; };
struct record { char name[24]; struct hook hook; double values[6]; };
struct hook *volatile hooks;
char *volatile text;
__attribute__((noinline)) static void fill(void)
{
	for (int i = 0; i < 20; i++) {
		struct record *r = calloc(1, sizeof *r);
		r->hook.next = hooks;
		hooks = &r->hook;
	}
	text = (char *)malloc(500) + 17;
	strcpy((char *)text, "the middle of an object");
	for (int i = 0; i < 4; i++)
		lose(calloc(1, 700 + 100 * i));
}
int main(int argc, char **argv)
{
	(void)argv;
	fixed = argc > 1;
	fill();
	finish();
}
