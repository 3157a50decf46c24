// A calendar: the month comes from the command line and is taken as it is, by way
// of a date that others use as well.
// CAUSE kind=value-from-input|bad-value
// FAILS signal=SIGSEGV says="fault at 0x"
// RUNS fail: 2024-20000000-05
// RUNS pass: 2024-02-05
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct date {
	int year, month, day;
};

static const char *const names[12] = { "January", "February", "March", "April", "May", "June",
				       "July", "August", "September", "October", "November", "December" };
static const int lengths[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

static struct date today;
static size_t printed;

static int is_leap(int year)
{
	return (year % 4 == 0 && year % 100) || year % 400 == 0;
}

static int set_today(const char *text)
{
	char *end;

	today.year = (int)strtol(text, &end, 10);
	today.month = (int)strtol(end + 1, &end, 10) - 1; // BUG
	today.day = (int)strtol(end + 1, &end, 10);
#ifdef FIXED
	if (today.month < 0 || today.month > 11)
		return 0;
#endif
	return *end == '\0';
}

static int days_left(const struct date *d)
{
	int length = lengths[d->month];

	if (d->month == 1 && is_leap(d->year))
		length++;
	return length - d->day;
}

static void print_month(const struct date *d)
{
	printed += strlen(names[d->month]);
	printf("%s %d, %d days left\n", names[d->month], d->year, days_left(d)); // HOP 1
}

int main(int argc, char **argv)
{
	if (argc < 2 || !set_today(argv[1]))
		return 0;
	print_month(&today);
	return printed == 0;
}
