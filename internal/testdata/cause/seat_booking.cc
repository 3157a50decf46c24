// Seats whose number each method looks at under the lock: two clerks see the same
// last seat, as each leaves the lock between asking and taking.
// CAUSE kind=atomicity-violation variable=hall.seats pattern=RWR|RWW missing=hall.lock
// FAILS signal=SIGABRT says="seats left"
// RUNS fail: 5 15
// RUNS fail: 15 5
// RUNS pass: 5 140
// RUNS pass: 140 5
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <unistd.h>

static void rest(int milliseconds)
{
	std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

class hall {
	int seats = 1;
	std::recursive_mutex lock;

public:
	bool free()
	{
		std::lock_guard<std::recursive_mutex> hold(lock);
		return seats > 0; // BUG 1
	}

	void take()
	{
		std::lock_guard<std::recursive_mutex> hold(lock);
		if (seats < 1) { // BUG 3
			std::fprintf(stderr, "%d seats left\n", seats);
			std::abort();
		}
		seats--; // BUG 2
	}

#ifdef FIXED
	std::unique_lock<std::recursive_mutex> session() { return std::unique_lock<std::recursive_mutex>(lock); }
#else
	std::unique_lock<std::recursive_mutex> session() { return {}; }
#endif
};

static hall hall;

static void book(int arrives)
{
	rest(arrives);
	auto session = hall.session();
	if (!hall.free())
		return;
	if (::write(1, "name?\n", 6) != 6)
		std::abort();
	rest(40); /* for the name */
	hall.take();
}

int main(int argc, char **argv)
{
	int first = argc > 1 ? std::atoi(argv[1]) : 5, second = argc > 2 ? std::atoi(argv[2]) : 140;
	std::thread clerks[] = {std::thread(book, first), std::thread(book, second)};

	for (auto &c : clerks)
		c.join();
	return 0;
}
