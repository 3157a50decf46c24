// A vector was moved away, and its size is read through a reference of before. The exception says that it is empty.
// ENDS: SIGABRT
// DECIDED: freed in main
#include <memory>
#include <stdexcept>
#include <vector>

struct Batch {
	std::vector<int> items;
	long limit = 3;
};

__attribute__((noinline)) static long limit_of(const Batch &b) { return b.limit; }

__attribute__((noinline)) static void finish(std::unique_ptr<Batch> b) { b->items.clear(); }

int main()
{
	auto batch = std::make_unique<Batch>();
	batch->items = {1, 2, 3};
	const Batch &seen = *batch;
	finish(std::move(batch));
	if (limit_of(seen) != 3)
		throw std::runtime_error("no limit");
	return 0;
}
