// pthread_once, call_once, std::call_once whose initialiser throws, and static
// variables whose initialisers several threads meet.
// ENDS: SIGABRT
// EVENTS: once 4
// EVENTS: guard 3
#include "check.h"
#include <mutex>
#include <pthread.h>
#include <thread>
#include <vector>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static std::once_flag flag;
static std::mutex m;
static int initialised, tries, statics, who_once, who_static;
static thread_local int me;

static void initialise()
{
	who_once = me;
	initialised++;
	std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

struct Heavy {
	explicit Heavy(int by)
	{
		std::this_thread::sleep_for(std::chrono::milliseconds(2));
		if (++statics < 3)
			throw by;
		who_static = by;
	}
};

static Heavy &heavy()
{
	static Heavy h(me);
	return h;
}

static void work(int number)
{
	me = number;
	pthread_once(&once, initialise);
	CHECK(initialised == 1);
	for (bool done = false; !done;) {
		try {
			std::call_once(flag, [] {
				if (++tries < 3)
					throw me;
			});
			done = true;
		} catch (int by) {
			CHECK(by == me);
		}
	}
	CHECK(tries == 3);
	for (bool done = false; !done;) {
		try {
			heavy();
			done = true;
		} catch (int by) {
			CHECK(by == me);
		}
	}
	CHECK(statics == 3);
	std::lock_guard<std::mutex> l(m);
	came((uint64_t)number);
}

int main()
{
	std::vector<std::thread> t;

	for (int i = 1; i <= 4; i++)
		t.emplace_back(work, i);
	for (auto &x : t)
		x.join();
	CHECK(who_once && who_static);
	came((uint64_t)(who_once * 10 + who_static));
	finish("once");
}
