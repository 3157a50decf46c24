// An entry is looked at and replaced in two sections, and the size is counted in a third: two threads may count an entry twice.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>

static std::mutex table_lock, size_lock, stat_lock;
static std::map<int, std::string> table;
static long size_, puts_;

static void put(int key)
{
	std::string text(key % 7 + 1, 'x');
	long old = 0;
	{
		std::lock_guard<std::mutex> in(table_lock);
		auto i = table.find(key); // BUG
		if (i != table.end())
			old = i->second.size(); // BUG
	}
	if (key == 5 && getpid() % 3 == 0)
		usleep(600);
	{
		std::lock_guard<std::mutex> in(table_lock);
		table[key] = text; // BUG
	}
	{
		std::lock_guard<std::mutex> in(size_lock);
		size_ += (long)text.size() - old; // BUG
	}
	std::lock_guard<std::mutex> in(stat_lock);
	puts_++;
}

static void work(int who)
{
	for (int i = 0; i < 9; i++) {
		usleep(25 + 45 * who);
		put((i + 2 * who) % 9);
	}
}

int main()
{
	std::thread a(work, 0);
	usleep(getpid() % 4 * 130);
	std::thread b(work, 1);
	a.join();
	b.join();
	long sum = 0;
	for (auto &e : table)
		sum += e.second.size();
	if (sum != size_) // BUG
		abort();
	printf("%ld %ld\n", sum, puts_);
}
