// The containers of the C++ library as programs use them: an ordered index, a
// hash table by string, strings built and thrown away, vectors that grow.
#include "bench.h"

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Order {
	std::string customer;
	std::vector<uint32_t> lines;
};

std::string name_of(uint64_t id)
{
	return "customer-" + std::to_string(id) + "@example.org";
}

void *body(void *arg)
{
	auto *w = static_cast<worker *>(arg);
	std::map<uint64_t, std::unique_ptr<Order>> orders;
	std::unordered_map<std::string, uint64_t> totals;

	for (uint64_t i = 0; i < w->work; i++) {
		auto order = std::make_unique<Order>();
		order->customer = name_of(bench_random(w) % 5000);
		for (uint64_t n = bench_random(w) % 12; n > 0; n--)
			order->lines.push_back(static_cast<uint32_t>(bench_random(w)));
		totals[order->customer] += order->lines.size();
		orders[bench_random(w) % 1000000] = std::move(order);
		if (orders.size() > 20000) {
			auto oldest = orders.lower_bound(bench_random(w) % 1000000);
			if (oldest == orders.end())
				oldest = orders.begin();
			std::string line = oldest->second->customer + ": ";
			for (uint32_t l : oldest->second->lines)
				line += std::to_string(l) + ",";
			bench_add(w, line.size() + static_cast<unsigned char>(line[9]));
			orders.erase(oldest);
		}
		if (i % 64 == 0)
			totals.erase(name_of(bench_random(w) % 5000));
	}
	uint64_t sum = 0;
	for (const auto &t : totals)
		sum += t.second * t.first.size();
	bench_add(w, sum);
	return nullptr;
}

} // namespace

int main(int argc, char **argv)
{
	return bench_main(argc, argv, body, 1600000);
}
