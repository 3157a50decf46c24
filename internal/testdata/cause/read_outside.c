// What a parcel costs follows from its zone. The table of the zones' names has one less
// than there are zones: the word after the table is the base rate, which is as it should be.
// CAUSE kind=bad-value variable=parcel.zone
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: overseas 3
// RUNS pass: island 3
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ZONES = 4 };

static struct {
	const char *names[ZONES];
	long base;
} tariff;

static struct {
	long weight, zone;
} parcel;

static size_t printed;

static void set_tariff(long base)
{
	static const char *const names[ZONES] = { "town", "country", "island", "abroad" };

	for (int i = 0; i < ZONES; i++)
		tariff.names[i] = names[i];
	tariff.base = base * 7;
}

__attribute__((noinline)) static void ship(void)
{
#ifdef FIXED
	parcel.zone = 3;
#else
	parcel.zone = 4; // BUG
#endif
}

static void classify(const char *to)
{
	parcel.zone = 2;
	if (!strcmp(to, "overseas"))
		ship();
}

__attribute__((noinline)) static void print_label(void)
{
	printed = strlen(tariff.names[parcel.zone]); // HOP 1
	printf("%s: %ld\n", tariff.names[parcel.zone], parcel.weight);
}

int main(int argc, char **argv)
{
	set_tariff(argc > 2 ? atol(argv[2]) : 1);
	parcel.weight = 12;
	classify(argc > 1 ? argv[1] : "town");
	print_label();
	return printed == 0;
}
