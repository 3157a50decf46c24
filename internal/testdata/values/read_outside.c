/* A loop goes one element too far. What it reads there is the word after the array, which
 * holds two counters: neither of them is wrong. */
// ENDS: SIGSEGV
// FLAGS: -O0
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) static long total(const char *text)
{
	const char *cells[4] = { "a", "bb", "ccc", "dddd" };
	long sum = 0;
	int n = (int)strlen(text);

	for (int i = 0; i <= n; i++) // WANT
		sum += (long)strlen(cells[i]);
	return sum;
}

int main(void)
{
	printf("%ld\n", total("abcdefgh"));
	return 0;
}
