/* One loop relays a 0 through three heap objects, which had a 0 there before: each store has
   the same instruction, the same value before and after, and no event between. */
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static void relay(int *to, const int *from, int n)
{
	for (int i = 0; i < n; i++)
		to[i] = from[i];
}
__attribute__((noinline)) static int share(const int *parts, int i) { return 1000 / parts[i]; }
int main(int argc, char **argv)
{
	int given[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	int *a = calloc(8, sizeof *a), *b = calloc(8, sizeof *b), *c = calloc(8, sizeof *c);
	if (argc < 2)
		given[5] = 0;
	relay(a, given, 8);
	relay(b, a, 8);
	relay(c, b, 8);
	printf("%d\n", share(c, 5));
	return 0;
}
