// Accounts in a vector: a reference to one is held while another one is opened, and
// the vector has moved when the reference is used.
// CAUSE kind=use-after-free
// FAILS signal=SIGABRT says="use-after-free"
// RUNS fail: 3
// RUNS pass: 8
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

struct account {
	std::string owner;
	long balance;
};

class bank {
public:
	explicit bank(std::size_t expected)
	{
		accounts.reserve(expected);
	}

	account &open(const char *owner, long balance)
	{
		accounts.push_back({owner, balance}); // OBJECT
		return accounts.back();
	}

	/* The fee goes to an account of its own, which is opened when it is needed. */
	void charge(std::size_t number, long fee)
	{
		account &from = accounts[number];
		account &fees = fee_account();
#ifdef FIXED
		accounts[number].balance -= fee;
#else
		from.balance -= fee; // BUG
#endif
		fees.balance += fee;
	}

	long total() const
	{
		long sum = 0;
		for (const account &a : accounts)
			sum += a.balance;
		return sum;
	}

private:
	account &fee_account()
	{
		for (account &a : accounts)
			if (a.owner == "fees")
				return a;
		return open("fees", 0);
	}

	std::vector<account> accounts;
};

int main(int argc, char **argv)
{
	bank b(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 8);

	b.open("ann", 100);
	b.open("bob", 200);
	b.open("eve", 300);
	b.charge(1, 5);
	std::printf("%ld\n", b.total());
	return 0;
}
