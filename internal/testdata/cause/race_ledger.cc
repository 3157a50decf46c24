// Fees are taken off an account in heap memory with the ledger's lock held, but for
// reading only: two at once, and one is lost.
// CAUSE kind=atomicity-violation variable="*balance|@OBJECT*|*@OBJECT*" pattern=RWW|RWR missing=ledger_lock
// FAILS signal=SIGABRT says="the balance is"
// RUNS fail: 5 25
// RUNS fail: 25 5
// RUNS pass: 5 150
// RUNS pass: 150 5
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <unistd.h>

struct account {
	long number, balance;
};

static std::shared_mutex ledger_lock;
static std::unique_ptr<account> savings;

static void enter(const char *what, long amount)
{
	char line[60];
	int n = snprintf(line, sizeof(line), "%s %ld\n", what, amount);

	write(1, line, static_cast<size_t>(n));
	usleep(60000); // the book is on paper
}

static void fee(int after, long amount)
{
	usleep(static_cast<useconds_t>(after) * 1000);
#ifdef FIXED
	std::unique_lock held(ledger_lock);
#else
	std::shared_lock held(ledger_lock);
#endif
	long balance = savings->balance; // BUG 1
	enter("fee", amount);
	savings->balance = balance - amount; // BUG 2 3
}

int main(int argc, char **argv)
{
	int first = argc > 1 ? atoi(argv[1]) : 5, second = argc > 2 ? atoi(argv[2]) : 150;

	savings = std::make_unique<account>(account{1, 100}); // OBJECT
	std::thread one(fee, first, 10), other(fee, second, 1);
	one.join();
	other.join();
	if (savings->balance != 89) {
		fprintf(stderr, "the balance is %ld\n", savings->balance);
		abort();
	}
	return 0;
}
