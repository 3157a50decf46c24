// A name to greet from the environment, which need not have it.
// CAUSE kind=value-from-input variable="name|user|the result of getenv|*"
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: GREETED_PERSON_OF_TODAY
// RUNS pass: PATH
#include <stdio.h>
#include <stdlib.h>

static long letters;

__attribute__((noinline)) static const char *configured(const char *variable)
{
	const char *name = getenv(variable); // BUG

#ifdef FIXED
	if (!name)
		return "";
#endif
	return name;
}

__attribute__((noinline)) static void greet(const char *name)
{
	for (; *name; name++)
		letters++;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 1;
	greet(configured(argv[1]));
	printf("%ld\n", letters);
	return 0;
}
