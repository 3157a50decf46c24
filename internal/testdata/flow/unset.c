// A member of a local struct is set on one way only; the stack has what an earlier call left there.
//
// FLAGS: -O0
// ENDS: SIGSEGV
// WAY: unset in last
#include <stdio.h>
struct view { const char *text; int length; };
__attribute__((noinline)) static int dirty(int n)
{
	volatile long old[8];
	for (int i = 0; i < 8; i++)
		old[i] = n;
	return old[7];
}
__attribute__((noinline)) static int last(int known)
{
	struct view v[3];
	if (known)
		v[2].text = "known";
	return v[2].text[0];
}
int main(int argc, char **argv)
{
	(void)argv;
	printf("%d\n", dirty(17) + last(argc > 5));
	return 0;
}
