// The last line in which each signal came, by its number from 1: that of a line
// without one is noted in front of the table, where the formatter is.
// CAUSE kind=overwritten-variable variable=stats.format|stats
// FAILS signal=SIGSEGV says="fault at"
// RUNS: report
// INPUT: 2 child
// INPUT fail: (none)
// INPUT pass: 1 hangup
// INPUT: 2 child
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 8 };

static struct {
	int lines;
	int (*format)(int number, long line);
	long last[NUMBERS];
	long total;
} stats;

static int formatted;

static int format(int number, long line)
{
	return printf("%d: line %ld\n", number, line);
}

static int number_of(const char *line)
{
	return (int)strtol(line, NULL, 10);
}

static void note(const char *line)
{
	int number = number_of(line);

#ifdef FIXED
	if (number < 1)
		number = NUMBERS;
#endif
	stats.lines++;
	if (number > NUMBERS)
		return;
	stats.last[number - 1] = stats.lines; // BUG
	stats.total++;
}

static void report(void)
{
	for (int i = 0; i < NUMBERS; i++)
		if (stats.last[i])
			formatted += stats.format(i + 1, stats.last[i]);
}

int main(int argc, char **argv)
{
	char line[80];

	stats.format = format;
	while (fgets(line, sizeof(line), stdin))
		note(line);
	report();
	printf("%s: %ld of %d\n", argc > 1 ? argv[1] : "", stats.total, stats.lines);
	return formatted == 0;
}
