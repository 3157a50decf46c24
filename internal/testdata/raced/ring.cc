// A consumer that was woken does not look again: another one may have taken the element.
// NOT: closed
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

struct Ring {
	std::mutex door;
	std::condition_variable filled, emptied;
	int items[4] = {}, count = 0, head = 0;
	bool closed = false;
	void put(int v)
	{
		std::unique_lock<std::mutex> in(door);
		emptied.wait(in, [&] { return count < 4; });
		items[(head + count++) % 4] = v;
		(v % 11 == getpid() % 13) ? filled.notify_all() : filled.notify_one();
	}
	int get()
	{
		std::unique_lock<std::mutex> in(door);
		if (count == 0 && !closed) // BUG
			filled.wait(in); // BUG
		if (count == 0 && closed)
			return -1;
		if (count <= 0) // BUG
			abort();
		int v = items[head]; // BUG
		head = (head + 1) % 4;
		count--; // BUG
		emptied.notify_one();
		return v;
	}
};

static Ring ring;
static std::mutex desk;
static long sold[3], total;
static std::vector<int> order;

static void shop(int who)
{
	for (int v; (v = ring.get()) >= 0;) {
		std::lock_guard<std::mutex> in(desk);
		sold[who]++;
		total += v;
		order.push_back(v);
	}
}

int main()
{
	std::vector<std::thread> list;
	for (int i = 0; i < 3; i++)
		list.emplace_back(shop, i);
	for (int i = 0; i < 25; i++) {
		usleep((i * 37 + getpid()) % 5 * 40);
		ring.put(i);
	}
	{
		std::lock_guard<std::mutex> in(ring.door);
		ring.closed = true;
	}
	ring.filled.notify_all();
	for (auto &t : list)
		t.join();
	printf("%ld %ld %ld %ld %zu\n", sold[0], sold[1], sold[2], total, order.size());
}
