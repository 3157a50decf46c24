// Whether a key was seen is looked at and set in two sections: two threads may both be the first.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

struct Register {
	std::mutex door, desk;
	std::vector<bool> seen = std::vector<bool>(40);
	long sum = 0, entries = 0;
};

static Register *book;

static bool first(int key)
{
	{
		std::lock_guard<std::mutex> in(book->door);
		if (book->seen[key])
			return false;
	}
	if (key == 21)
		usleep(300);
	std::lock_guard<std::mutex> in(book->door);
	book->seen[key] = true; // BUG
	return true;
}

static void enter(int pace)
{
	for (int key : {9, 33, 4, 21, 17, 2}) {
		usleep(pace);
		if (first(key)) {
			std::lock_guard<std::mutex> in(book->desk);
			book->sum = book->sum + key;
			book->entries++;
		}
	}
}

int main()
{
	book = new Register;
	std::thread a(enter, 30);
	usleep(getpid() % 4 * 300);
	std::thread b(enter, 70);
	a.join();
	b.join();
	if (book->sum != 86)
		abort();
	puts("good");
	return 0;
}
