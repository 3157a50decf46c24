// A function keeps the address of a local variable in a global one; another function's frame reaches there.
//
// FLAGS: -O1
// ENDS: SIGSEGV
// WAY: left in open_view
#include <stdio.h>
struct view { const char *text; int length; };
static const struct view *current;
static volatile long used;
__attribute__((noinline)) static void open_view(const char *text)
{
	struct view here = { text, 4 };
	__asm__ volatile("" : : "r"(&here) : "memory");
	current = &here;
}
__attribute__((noinline)) static int fill(int n)
{
	volatile long room[64];
	for (int i = 0; i < 64; i++)
		room[i] = n;
	used = room[9];
	return (int)used;
}
__attribute__((noinline)) static int length(const struct view *v) { return v->text[0] + v->length; }
int main(int argc, char **argv)
{
	(void)argv;
	open_view("text");
	int filled = fill(argc + 16);
	printf("%d\n", filled + length(current));
	return 0;
}
