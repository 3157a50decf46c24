// Labels for a plot: what a label is made of is counted, but for the sign that a
// negative value has.
// CAUSE kind=heap-overflow
// FAILS signal=SIGABRT says="overflow"
// RUNS fail: 12 -100 7
// RUNS pass: 12 100 7
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct axis {
	const char *unit;
	char *labels[8];
	int count;
};

static size_t digits(int value)
{
	size_t n = 1;

	while (value /= 10)
		n++;
	return n;
}

static char *make_label(const struct axis *a, int value)
{
	size_t size = strlen(a->unit) + 1 + digits(value) + 1;
	char *label;

#ifdef FIXED
	size += value < 0;
#endif
	label = malloc(size); // OBJECT
	sprintf(label, "%d %s", value, a->unit); // BUG
	return label;
}

static void add_label(struct axis *a, int value)
{
	if (a->count < 8)
		a->labels[a->count++] = make_label(a, value);
}

static void draw(const struct axis *a)
{
	for (int i = 0; i < a->count; i++)
		printf("%*s|%s\n", i, "", a->labels[i]);
}

static void drop(struct axis *a)
{
	while (a->count)
		free(a->labels[--a->count]);
}

int main(int argc, char **argv)
{
	struct axis a = { .unit = "millivolt" };

	for (int i = 1; i < argc; i++)
		add_label(&a, atoi(argv[i]));
	draw(&a);
	drop(&a);
	return 0;
}
