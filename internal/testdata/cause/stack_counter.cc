// A tally on main's stack, which two threads have a reference to and raise without its
// lock: one of the votes is lost.
// CAUSE kind=atomicity-violation variable="main's votes.count" pattern=RWW|RWR
// FAILS signal=SIGABRT says="votes were counted"
// RUNS fail: 5 25
// RUNS fail: 25 5
// RUNS pass: 5 150
// RUNS pass: 150 5
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <unistd.h>

class tally {
	std::mutex lock;
	long count = 0;

public:
	void vote(const char *who)
	{
#ifdef FIXED
		std::lock_guard<std::mutex> held(lock);
#endif
		long before = count; // BUG 1
		write(1, who, 6);
		usleep(60000); // the ballot paper is looked at
		count = before + 1; // BUG 2 3
	}

	long counted()
	{
		std::lock_guard<std::mutex> held(lock);
		return count;
	}
};

int main(int argc, char **argv)
{
	int first = argc > 1 ? atoi(argv[1]) : 5, second = argc > 2 ? atoi(argv[2]) : 150;
	tally votes;

	std::thread one([&] { usleep(static_cast<useconds_t>(first) * 1000); votes.vote("north\n"); });
	std::thread other([&] { usleep(static_cast<useconds_t>(second) * 1000); votes.vote("south\n"); });
	one.join();
	other.join();
	if (votes.counted() != 2) {
		fprintf(stderr, "%ld votes were counted\n", votes.counted());
		abort();
	}
	return 0;
}
