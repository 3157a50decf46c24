// A referee counts a goal and then the points, each in a call of its own that locks; a display that asks in between keeps the
// points of one goal. That the display's number is wrong shows in a vector of results, after all threads have ended.
// CAUSE kind=atomicity-violation pattern="two variables"
// FAILS signal=SIGABRT says="points for a goal"
// RUNS fail: 5 25
// RUNS pass: 5 150
// RUNS pass: 150 5
// COMPILERS: gcc clang
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

class Board {
	mutable std::mutex lock;
	int goals = 1, points = 3;

public:
	void goal()
	{
		std::lock_guard<std::mutex> hold(lock);
		goals++; // BUG 1
	}
	void score(int n)
	{
		std::lock_guard<std::mutex> hold(lock);
		points += n; // BUG 3
	}
	void both(int n)
	{
		std::lock_guard<std::mutex> hold(lock);
		goals++;
		points += n;
	}
	int rate() const
	{
		std::lock_guard<std::mutex> hold(lock);
		return points * 10 / goals; // BUG 2
	}
};

static std::vector<int> results;

static void rest(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

static void referee(Board &board, int delay)
{
	rest(delay);
#ifdef FIXED
	board.both(3);
#else
	board.goal();
	rest(60);
	board.score(3);
#endif
}

static void display(const Board &board, int delay)
{
	rest(delay);
	results.push_back(board.rate());
}

__attribute__((noinline)) static void check(int rate)
{
	if (rate != 30) {
		std::fprintf(stderr, "%d points for a goal\n", rate / 10);
		std::abort();
	}
}

int main(int argc, char **argv)
{
	static Board board;
	int first = argc > 1 ? std::atoi(argv[1]) : 5, second = argc > 2 ? std::atoi(argv[2]) : 150;
	std::thread a(referee, std::ref(board), first), b(display, std::cref(board), second);

	a.join();
	b.join();
	for (int r : results)
		check(r);
	return 0;
}
