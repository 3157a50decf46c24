// What C++ programs ask of a heap: every operator, exceptions across threads,
// exhaustion, promises.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <new>
#include <numeric>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

struct alignas(64) line {
	int v[16];
};
struct base {
	virtual ~base() = default;
	std::string name = "a name that is longer than a string holds";
};
struct derived : base {
	std::vector<int> more = std::vector<int>(100);
};

static int handled;

static void exhausted()
{
	handled++;
	std::set_new_handler(nullptr);
}

int main()
{
	std::set_new_handler(exhausted);
	int caught = 0;
	volatile std::size_t huge = std::size_t(1) << 60;
	try {
		delete[] new char[huge];
	} catch (std::bad_alloc &) {
		caught++;
	}
	try {
		delete[] new line[huge / 64];
	} catch (std::bad_alloc &) {
		caught++;
	}
	if (new (std::nothrow) char[huge])
		puts("an exabyte?");
	printf("handled %d caught %d\n", handled, caught);

	std::vector<std::future<long>> futures;
	for (int t = 0; t < 6; t++)
		futures.push_back(std::async(std::launch::async, [t] {
			std::unordered_map<std::string, std::list<int>> map;
			for (int i = 0; i < 20000; i++)
				map["key " + std::to_string(i % 777)].push_back(i * t);
			if (t == 5)
				throw std::runtime_error("a message long enough to be allocated: " + std::to_string(map.size()));
			long sum = 0;
			for (auto &[k, v] : map)
				sum = std::accumulate(v.begin(), v.end(), sum);
			return sum;
		}));
	for (auto &f : futures)
		try {
			printf("%ld\n", f.get());
		} catch (std::exception &e) {
			puts(e.what());
		}

	for (int i = 0; i < 2000; i++) {
		std::unique_ptr<base> p = std::make_unique<derived>();
		std::shared_ptr<line[]> s(new line[i % 9 + 1]);
		if (reinterpret_cast<std::uintptr_t>(s.get()) % 64)
			puts("misaligned");
		std::function<int()> f = [p = std::make_shared<derived>(), i] { return i + (int)p->more.size(); };
		std::any_of(p->name.begin(), p->name.end(), [&](char c) { return c == f(); });
		delete new (std::align_val_t(4096)) line;
		operator delete(operator new(100), std::size_t(100));
		operator delete[](operator new[](1000, std::nothrow), std::nothrow);
		operator delete(operator new(48, std::align_val_t(16)), std::size_t(48), std::align_val_t(16));
	}
	std::ostringstream out;
	for (int i = 0; i < 10000; i++)
		out << i << ' ';
	const std::string text = out.str();
	const std::regex sevens("7\\d");
	printf("%zu %td\n", text.size(), std::distance(std::sregex_iterator(text.begin(), text.end(), sevens), {}));
	for (int i = 0; i < 500; i++)
		try {
			throw std::make_shared<derived>();
		} catch (std::shared_ptr<derived> &) {
		}
	return 0;
}
