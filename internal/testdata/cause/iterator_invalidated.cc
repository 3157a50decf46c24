// Listeners in a vector: one is told while another thread adds a listener, and the
// vector moves elsewhere. That the loop's look at the vector and its use of the
// element are one thing (two variables), and that the element may not go before it
// is used (WR), is the same to the program: add can come between only so.
// CAUSE kind=atomicity-violation|use-after-free|order-violation pattern="two variables|WR|"
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
	std::string line = *l.name + ": " + what + "\n"; // BUG 3
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
	for (listener &l : listeners) // BUG 1
		send(l, what);
}

static void add(const std::string &name)
{
	std::lock_guard<std::mutex> hold(listeners_lock);
	listeners.push_back({&name, 0}); // BUG 2
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
