// Two words that a sequence lock protects, and a flag that ends the reader's loop.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
struct Box { std::atomic<unsigned> seq{0}; long a = 0, b = 0; std::atomic<bool> done{false}; };
int main()
{
	Box box; std::vector<long> seen;
	std::thread writer([&] {
		for (int i = 1; i <= 3000; i++) {
			box.seq.store(box.seq.load(std::memory_order_relaxed) + 1, std::memory_order_release);
			box.a = i; box.b = -i;
			box.seq.store(box.seq.load(std::memory_order_relaxed) + 1, std::memory_order_release);
		}
		box.done.store(true, std::memory_order_release);
	});
	unsigned long rounds = 0, torn = 0, hash = 0;
	while (!box.done.load(std::memory_order_acquire)) {
		unsigned s = box.seq.load(std::memory_order_acquire);
		long a = *(volatile long *)&box.a, b = *(volatile long *)&box.b;
		if (s & 1 || s != box.seq.load(std::memory_order_acquire)) { torn++; continue; }
		hash = hash * 31 + a - b; rounds++;
		if (rounds % 64 == 0) seen.push_back(a);
	}
	writer.join();
	std::printf("%lu %lu %lu %zu\n", rounds, torn, hash, seen.size()); std::fflush(stdout);
	std::abort();
}
