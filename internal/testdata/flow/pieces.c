// Text that is copied a byte at a time runs into the pointer that follows its array.
//
// FLAGS: -O1
// ARGS: a-name-that-is-too-long-for-it
// ENDS: SIGSEGV
// WAY: pieces in name
#include <stdio.h>
static struct { char name[16]; const char *greeting; } user = { "", "hello" };
__attribute__((noinline)) static void name(char *to, const char *from)
{
	while (*from)
		*to++ = *from++;
}
int main(int argc, char **argv)
{
	name(user.name, argv[argc - 1]);
	printf("%c\n", user.greeting[0]);
	return 0;
}
