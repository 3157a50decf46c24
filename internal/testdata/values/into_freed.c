/* The index of one array leads far past its end, into memory that was freed. That the free is withheld hides the damage, but it is no
 * use after free. */
// ENDS: SIGABRT
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static void fill(char *row, long from, int n)
{
	for (int i = 0; i < n; i++)
		row[from + i] = 'x'; // WANT
}

int main(void)
{
	char *row = malloc(84), *other = malloc(88);
	volatile long distance = other - row; // a wrong index
	free(other);
	fill(row, distance + 16, 18);
	printf("%c\n", row[0]);
	return 0;
}
