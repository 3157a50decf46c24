// Sums of money that are written from their last digit to the first, with a comma
// for every three: a buffer for the digits alone begins too late.
// CAUSE kind=heap-underflow
// FAILS signal=SIGABRT says="underflow"
// RUNS fail: 12 9800 1234567890
// RUNS pass: 12 980
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bill {
	char *lines[8];
	int count;
	unsigned long total;
};

static size_t room_for(unsigned long amount)
{
	size_t digits = 1;

	while (amount /= 10)
		digits++;
#ifdef FIXED
	digits += (digits - 1) / 3;
#endif
	return digits + 1;
}

static char *write_amount(char *end, unsigned long amount)
{
	int digits = 0;

	*--end = '\0';
	do {
		if (digits && digits % 3 == 0)
			*--end = ',';
		*--end = (char)('0' + amount % 10); // BUG
		digits++;
	} while (amount /= 10);
	return end;
}

static void add(struct bill *b, unsigned long amount)
{
	size_t room = room_for(amount);
	char *text = malloc(room); // OBJECT

	write_amount(text + room, amount);
	b->lines[b->count++] = text;
	b->total += amount;
}

static void print(const struct bill *b)
{
	for (int i = 0; i < b->count; i++)
		printf("%20s\n", b->lines[i]);
	printf("%20lu\n", b->total);
}

int main(int argc, char **argv)
{
	struct bill b = { .count = 0 };

	for (int i = 1; i < argc && i < 8; i++)
		add(&b, strtoul(argv[i], NULL, 10));
	print(&b);
	while (b.count)
		free(b.lines[--b.count]);
	return 0;
}
