// A window whose two sizes are set one after the other, each under the lock, and a
// painter that sees the new width with the old height.
// CAUSE kind=atomicity-violation variable=view.width,view.height pattern="two variables"
// FAILS signal=SIGABRT says="pixels"
// RUNS fail: 5 25
// RUNS pass: 5 160
// RUNS pass: 160 5
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <unistd.h>

struct window {
	std::mutex lock;
	long width = 600, height = 400;
};

static window view;
static std::mutex resize_lock;

static void rest(int milliseconds)
{
	std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

static void set_width(long to)
{
	std::lock_guard<std::mutex> hold(view.lock);
	view.width = to; // BUG 1
}

static void set_height(long to)
{
	std::lock_guard<std::mutex> hold(view.lock);
	view.height = to; // BUG 4
}

static void tell_frame()
{
	if (::write(1, "frame\n", 6) != 6)
		std::abort();
	rest(40);
}

static void turn(int when)
{
	rest(when);
#ifdef FIXED
	std::lock_guard<std::mutex> hold(resize_lock);
#endif
	set_width(400);
	tell_frame();
	set_height(600);
}

static void paint(int when)
{
	rest(when);
#ifdef FIXED
	std::lock_guard<std::mutex> hold(resize_lock);
#endif
	view.lock.lock();
	long width = view.width; // BUG 2
	long height = view.height; // BUG 3
	view.lock.unlock();

	if (width * height != 240000) {
		std::fprintf(stderr, "%ld pixels\n", width * height);
		rest(60); /* on a slow console */
		std::abort();
	}
}

int main(int argc, char **argv)
{
	int turns = argc > 1 ? std::atoi(argv[1]) : 5, paints = argc > 2 ? std::atoi(argv[2]) : 160;
	std::thread user(turn, turns), painter(paint, paints);

	user.join();
	painter.join();
	return 0;
}
