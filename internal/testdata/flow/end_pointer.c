/* The end of one array is the address of the next variable. A function that goes back from an end is inside of the array. */
// ENDS: SIGSEGV
// WAY: constant in main
#include <stdio.h>

struct pair {
	const char *words[4], *others[4];
};

__attribute__((noinline)) static void reverse(const char **first, const char **last)
{
	while (first != last && first != --last) {
		const char *word = *first;

		*first++ = *last;
		*last = word;
	}
}

__attribute__((noinline)) static int all(const char **words, const char **end)
{
	int sum = 0;

	while (end != words)
		sum += **--end;
	return sum;
}

int main(int argc, char **argv)
{
	const char *more[4] = { "e", "f", "g", "h" }, *words[4] = { "a", "b", "c", "d" };

	(void)argv;
	words[3] = argc > 3 ? "z" : 0;
	reverse(words, words + 4);
	reverse(more, more + 4);
	printf("%d\n", all(words, words + 4) + all(more, more + 4));
	return 0;
}
