// Listeners in a vector: one is told while another thread adds a listener, and the
// vector moves elsewhere.
// CAUSE kind=use-after-free|atomicity-violation|order-violation pattern="WR|"
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: 5 25
// RUNS pass: 5 200
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <unistd.h>

struct listener {
	const std::string *name;
	int told;
};

static std::vector<listener> listeners;
static std::mutex listeners_lock;
static std::size_t letters;

static void rest(int milliseconds)
{
	std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

static void send(listener &l, const char *what)
{
	std::string line = *l.name + ": " + what + "\n"; // BUG 2
	letters += line.size();
	l.told++;
	if (::write(1, line.data(), line.size()) < 0)
		std::abort();
	rest(40);
}

static void tell(const char *what)
{
#ifdef FIXED
	std::lock_guard<std::mutex> hold(listeners_lock);
#endif
	for (listener &l : listeners)
		send(l, what);
}

static void add(const std::string &name)
{
	std::lock_guard<std::mutex> hold(listeners_lock);
	listeners.push_back({&name, 0}); // BUG 1
}

int main(int argc, char **argv)
{
	int tells = argc > 1 ? std::atoi(argv[1]) : 5, adds = argc > 2 ? std::atoi(argv[2]) : 200;
	static const std::string names[] = {"screen", "speaker", "printer"};

	add(names[0]);
	add(names[1]);
	std::thread teller([tells] { rest(tells); tell("hello"); });
	std::thread adder([adds] { rest(adds); add(names[2]); });
	teller.join();
	adder.join();
	return letters == 0;
}
