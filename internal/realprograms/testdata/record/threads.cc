// What C++ programs share: tasks, futures, pointers with counts, a once, an
// atomic counter whose value nobody looks at before the end.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

struct queue {
	std::mutex lock;
	std::condition_variable filled;
	std::deque<std::shared_ptr<std::string>> items;
	bool closed = false;

	void push(std::shared_ptr<std::string> item)
	{
		{
			std::lock_guard guard(lock);
			items.push_back(std::move(item));
		}
		filled.notify_one();
	}
	std::shared_ptr<std::string> pop()
	{
		std::unique_lock guard(lock);
		filled.wait(guard, [this] { return closed || !items.empty(); });
		if (items.empty())
			return nullptr;
		auto item = std::move(items.front());
		items.pop_front();
		return item;
	}
};

static std::map<std::string, int> &seen()
{
	static std::map<std::string, int> map;
	return map;
}

int main()
{
	queue q;
	std::shared_mutex lock;
	std::vector<std::shared_ptr<std::string>> kept;
	std::vector<std::thread> threads;
	for (int t = 0; t < 4; t++)
		threads.emplace_back([&] {
			while (auto item = q.pop()) {
				{
					std::unique_lock guard(lock);
					seen()[*item]++;
					kept.push_back(item);
				}
				std::shared_lock guard(lock);
				if (seen().size() > 1000)
					std::abort();
			}
		});
	std::vector<std::future<long>> sums;
	for (int i = 0; i < 8; i++)
		sums.push_back(std::async(i % 2 ? std::launch::async : std::launch::deferred, [i] {
			std::vector<long> v(20000);
			std::iota(v.begin(), v.end(), i);
			return std::accumulate(v.begin(), v.end(), 0l);
		}));
	for (int i = 0; i < 4000; i++)
		q.push(std::make_shared<std::string>("item " + std::to_string(i % 97)));
	{
		std::lock_guard guard(q.lock);
		q.closed = true;
	}
	q.filled.notify_all();
	for (auto &t : threads)
		t.join();
	long sum = 0;
	for (auto &s : sums)
		sum += s.get();
	std::printf("%zu items, %zu kinds, %ld\n", kept.size(), seen().size(), sum);
	std::abort();
}
