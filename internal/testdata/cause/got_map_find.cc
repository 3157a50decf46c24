// Prices by name: what is not there is no end of the map for whoever asks, but the
// price behind it.
// CAUSE kind=bad-value variable="price|*price*|the result of *"
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: pear plum fig
// RUNS pass: pear plum pear
#include <cstdio>
#include <map>
#include <string>

struct Price {
	long amount;
};

class Prices {
public:
	void add(const std::string &name, long amount)
	{
		prices_[name] = new Price{amount};
	}

	[[gnu::noinline]] const Price *of(const std::string &name) const
	{
		auto found = prices_.find(name); // BUG 2
		if (found == prices_.end()) // BUG 1
			return nullptr; // BUG
		return found->second;
	}

private:
	std::map<std::string, Price *> prices_;
};

int main(int argc, char **argv)
{
	Prices prices;
	long sum = 0;

	prices.add("pear", 3);
	prices.add("plum", 2);
	for (int i = 1; i < argc; i++) {
		const Price *price = prices.of(argv[i]);
#ifdef FIXED
		if (!price)
			continue;
#endif
		sum += price->amount;
	}
	std::printf("%ld\n", sum);
	return 0;
}
