/* A number of four bytes in another function's frame is read as one of eight, which is the index of an element. */
// FLAGS: -O0
// ENDS: SIGSEGV
// WAY: outside in pick
#include <cstdio>

static char letters[64];

__attribute__((noinline)) static char pick(const long *index) { return letters[*index]; }

__attribute__((noinline)) static char first(int of)
{
	struct {
		int limit, high;
	} volatile wide = {of, 0x7fff};
	int index[1] = {of};
	int number = of;
	const void *volatile given = &number;
	return static_cast<char>(pick(static_cast<const long *>(given)) + index[0] + wide.high);
}

int main(int argc, char **)
{
	std::printf("%d\n", first(argc));
	return 0;
}
