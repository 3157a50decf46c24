// A board that shared pointers keep alive in each thread, which is taken for all
// that is needed: its counter is raised without a lock.
// CAUSE kind=atomicity-violation variable="*hits|board->hits|b.hits|*@OBJECT*" pattern=RWW
// FAILS signal=SIGABRT says="of 2 hits"
// RUNS fail: 5 15
// RUNS fail: 15 5
// RUNS pass: 5 140
// RUNS pass: 140 5
// COMPILERS: gcc clang
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <unistd.h>

struct board {
	const char *title = "hits";
	long hits = 0;
};

static void rest(int milliseconds)
{
	std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

static void draw(const board &b, long hits)
{
	char line[60];
	int n = std::snprintf(line, sizeof(line), "%s: %ld\n", b.title, hits);

	if (::write(1, line, n) != n)
		std::abort();
	rest(40);
}

__attribute__((noinline)) static void hit(board &b)
{
#ifdef FIXED
	draw(b, __atomic_add_fetch(&b.hits, 1, __ATOMIC_ACQ_REL));
#else
	long hits = b.hits; // BUG 1

	draw(b, hits);
	b.hits = hits + 1; // BUG 2 3
#endif
}

static void serve(std::shared_ptr<board> mine, int arrives)
{
	rest(arrives);
	hit(*mine);
}

__attribute__((noinline)) static void check(const board *b)
{
	if (b->hits != 2) {
		std::fprintf(stderr, "%ld of 2 hits\n", b->hits);
		std::abort();
	}
}

int main(int argc, char **argv)
{
	int first = argc > 1 ? std::atoi(argv[1]) : 5, second = argc > 2 ? std::atoi(argv[2]) : 140;
	auto all = std::make_shared<board>(); // OBJECT
	std::thread threads[] = {std::thread(serve, all, first), std::thread(serve, all, second)};

	for (auto &t : threads)
		t.join();
	check(all.get());
	return 0;
}
