// A cash book: a customer's name that is too long for its field continues into the
// balance. The check at the end of the day finds it, and the program ends by exit.
// CAUSE kind=overwritten-variable variable=book.balance|book
// FAILS exit=1 says="the entries come to"
// RUNS fail: Wolfeschlegelsteinhausen
// RUNS pass: Smith
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	char customer[16];
	long balance;
	long entries[8];
	int used;
} book;

static void enter(long amount)
{
	book.entries[book.used++] = amount;
	book.balance += amount;
}

static void set_customer(const char *name)
{
	size_t n = strlen(name);

#ifdef FIXED
	if (n >= sizeof(book.customer))
		n = sizeof(book.customer) - 1;
#endif
	for (size_t i = 0; i < n; i++) {
		char c = name[i];

		book.customer[i] = c >= 'a' && c <= 'z' ? (char)(c - 32) : c; // BUG
	}
}

static void close_day(void)
{
	long sum = 0;

	for (int i = 0; i < book.used; i++)
		sum += book.entries[i];
	if (book.balance != sum) {
		fprintf(stderr, "the entries come to %ld, and the balance is %ld\n", sum, book.balance);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	enter(250);
	enter(-40);
	enter(75);
	set_customer(argc > 1 ? argv[1] : "Smith");
	printf("the last customer was %.16s\n", book.customer);
	close_day();
	return 0;
}
