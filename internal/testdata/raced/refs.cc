// The count of users is read and written in two sections: two readers may both find themselves the last, or none does.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <unistd.h>

struct Page {
	int users = 1;
	char *text = nullptr;
	long hits = 0;
};

static std::mutex door, stat;
static Page *pages[5];
static long opened, closed_, freed;

static Page *open_page(int i)
{
	std::lock_guard<std::mutex> in(door);
	opened++;
	pages[i]->users++;
	return pages[i];
}

static void close_page(Page *p)
{
	int users;
	{
		std::lock_guard<std::mutex> in(door);
		users = p->users - 1; // BUG
		closed_++;
	}
	if (p->hits > 1)
		usleep(100);
	{
		std::lock_guard<std::mutex> in(door);
		p->users = users; // BUG
	}
	if (users == 0) { // BUG
		free(p->text); // BUG
		p->text = nullptr; // BUG
		std::lock_guard<std::mutex> in(stat);
		freed++;
	}
}

static void reader(int who)
{
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 5; i++) {
			usleep(20 + who * 30);
			Page *p = open_page(i);
			{
				std::lock_guard<std::mutex> in(stat);
				p->hits += p->text[0] == 'x'; // BUG
			}
			close_page(p);
		}
}

int main()
{
	for (auto &p : pages) {
		p = new Page;
		p->text = static_cast<char *>(malloc(10));
		p->text[0] = 'x';
	}
	std::thread a(reader, 0);
	usleep(getpid() % 4 * 120);
	std::thread b(reader, 1);
	a.join();
	b.join();
	for (auto &p : pages)
		if (p->users != 1) // BUG
			abort();
	printf("%ld %ld %ld\n", opened, closed_, freed);
}
