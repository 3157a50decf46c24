/* A validator with a wrong constant: months of 31 days end on the 30th. */
// ENDS: exit 3
// FAILS: 2024-01-31
// PASSES: 2024-01-30 | 2023-02-28 | 1999-12-01
// REFUSED: 2024-13-01
#include <stdio.h>
#include <stdlib.h>

#ifdef FIXED
enum { longest = 31 };
#else
enum { longest = 30 };
#endif

struct date { int year, month, day; };

__attribute__((noinline)) static int valid(const struct date *d)
{
	if (d->month < 1 || d->month > 12)
		return 0;
	int last = longest;
	if (d->month == 2)
		last = 28 + (d->year % 4 == 0);
	else if (d->month == 4 || d->month == 6 || d->month == 9 || d->month == 11)
		last = 30;
	return d->day >= 1 && d->day <= last; // DIVERGES
}

int main(int argc, char **argv)
{
	struct date d;
	if (argc < 2 || sscanf(argv[1], "%d-%d-%d", &d.year, &d.month, &d.day) != 3)
		return 2;
	if (!valid(&d)) {
		fprintf(stderr, "%s: no such day\n", argv[1]);
		exit(3);
	}
	puts("valid");
	return 0;
}
