// A pool of threads on main's stack is told to stop, without its lock: a worker that has
// just seen that it has not to stop goes to sleep when everybody has been woken up.
// CAUSE kind=order-violation|atomicity-violation variable="main's workers.stop" pattern=RW
// FAILS signal=SIGABRT says="a worker sleeps on"
// RUNS fail: 5 20
// RUNS pass: 150 20
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <unistd.h>

class pool {
	std::mutex lock;
	std::condition_variable news;
	std::queue<std::function<void()>> jobs;
	std::atomic<bool> stop{false};
	std::atomic<int> working{1};

	bool due()
	{
		if (!jobs.empty() || stop) // BUG 1
			return true;
		write(1, "idle\n", 5);
		usleep(60000); // the monitoring is remote
		return false;
	}

	void work()
	{
		for (;;) {
			std::unique_lock<std::mutex> held(lock);
			news.wait(held, [this] { return due(); });
			if (jobs.empty())
				break;
			std::function<void()> job = std::move(jobs.front());
			jobs.pop();
			held.unlock();
			job();
		}
		working--;
	}

	std::thread worker;

public:
	explicit pool(std::function<void()> first)
	{
		jobs.push(std::move(first));
		worker = std::thread([this] { work(); });
	}

	~pool()
	{
#ifdef FIXED
		lock.lock();
#endif
		stop = true; // BUG 2
#ifdef FIXED
		lock.unlock();
#endif
		news.notify_all();
		for (int looks = 0; working && looks < 100; looks++)
			usleep(10000);
		if (working) {
			fprintf(stderr, "a worker sleeps on\n");
			abort();
		}
		worker.join();
	}
};

int main(int argc, char **argv)
{
	int takes = argc > 1 ? atoi(argv[1]) : 150, after = argc > 2 ? atoi(argv[2]) : 20;
	std::atomic<int> done{0};
	{
		pool workers([&] { usleep(static_cast<useconds_t>(takes) * 1000); done++; });
		usleep(static_cast<useconds_t>(after) * 1000);
	}
	return done != 1;
}
