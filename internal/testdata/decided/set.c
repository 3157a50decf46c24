/* One store of a constant is all that decides. */
// ENDS: exit 1
// DECIDED: set in adjust
#include <stdio.h>

static int total = 4;
__attribute__((noinline)) static void adjust(void)
{
	total = 7;
}

int main(void)
{
	puts("begins");
	adjust();
	if (total != 4)
		return 1;
	return 0;
}
