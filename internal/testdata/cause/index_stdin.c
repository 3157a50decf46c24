// A booking of seats: the row is compared with the rows that there are, the seat
// with nothing; the price of a seat that there is not is looked up.
// CAUSE kind=value-from-input
// FAILS signal=SIGSEGV says="fault at 0x"
// RUNS: hall
// INPUT: 2 11
// INPUT fail: 3 91000000
// INPUT pass: 3 9
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 12, SEATS = 20 };

static unsigned char price_class[ROWS][SEATS];
static long prices[4] = { 900, 1400, 2200, 3100 };
static long income;

struct booking {
	int row, seat;
};

static void open_hall(void)
{
	for (int r = 0; r < ROWS; r++)
		for (int s = 0; s < SEATS; s++)
			price_class[r][s] = (unsigned char)((ROWS - r) / 4);
}

static int parse(const char *line, struct booking *b)
{
	char *end;

	b->row = (int)strtol(line, &end, 10);
	b->seat = (int)strtol(end, &end, 10); // HOP 1
	if (b->row < 0 || b->row >= ROWS)
		return 0;
#ifdef FIXED
	if (b->seat < 0 || b->seat >= SEATS)
		return 0;
#endif
	return 1;
}

static long price(const struct booking *b)
{
	return prices[price_class[b->row][b->seat] & 3]; // HOP 2
}

static int read_line(char *line, size_t size)
{
	size_t n = 0;

	while (n + 1 < size && read(0, line + n, 1) == 1 && line[n] != '\n') // BUG
		n++;
	line[n] = '\0';
	return n > 0;
}

int main(int argc, char **argv)
{
	struct booking b;
	char line[80];

	open_hall();
	while (read_line(line, sizeof(line)))
		if (parse(line, &b))
			income += price(&b);
	printf("%s: %ld\n", argc > 1 ? argv[1] : "", income);
	return 0;
}
