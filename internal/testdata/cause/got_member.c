// A journal that has its clerk looked up when it is opened, and asks him at the end of
// the day, in another function.
// CAUSE kind=bad-value variable="*clerk*"
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: 7 3 9
// RUNS pass: 7 3 7
// COMPILERS: gcc clang
#include <stdio.h>
#include <stdlib.h>

struct clerk {
	int number;
	long entries;
};

struct journal {
	long pages;
	struct clerk *clerk;
};

static struct clerk clerks[] = { { 3, 0 }, { 5, 0 }, { 7, 0 } };

__attribute__((noinline)) static struct clerk *find_clerk(int number)
{
	for (unsigned i = 0; i < sizeof(clerks) / sizeof(*clerks); i++) { // BUG 1
		if (clerks[i].number == number) // BUG 2
			return &clerks[i];
	}
	return NULL; // BUG
}

__attribute__((noinline)) static struct journal *open_journal(int number)
{
	struct journal *j = calloc(1, sizeof(*j));

	j->pages = 12;
	j->clerk = find_clerk(number);
	return j;
}

__attribute__((noinline)) static void close_journal(struct journal *j)
{
#ifdef FIXED
	if (j->clerk)
#endif
	j->clerk->entries += j->pages;
	free(j);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		close_journal(open_journal(atoi(argv[i])));
	printf("%ld\n", clerks[0].entries + clerks[2].entries);
	return 0;
}
