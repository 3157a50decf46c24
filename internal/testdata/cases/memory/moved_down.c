/* A row is removed twice from the start of an array; memmove brings the 0 of a later row down
   by the same instructions each time, over a 0. */
#include <stdio.h>
#include <string.h>
static long rows[6] = { 1, 2, 0, 0, 5, 6 };
__attribute__((noinline)) static void drop_first(long n) { memmove(rows, rows + 1, n * sizeof *rows); }
__attribute__((noinline)) static long per_row(int i) { return 1000 / rows[i]; }
int main(int argc, char **argv)
{
	long n = 5;
	rows[3] = argc - 1;
	drop_first(n);
	drop_first(n);
	printf("%ld\n", per_row(1));
	return 0;
}
