package verdict_test

import (
	"testing"

	"diagnose/evidence"
)

// decidedPrograms wait once, and give up if there is nothing after that.
var decidedPrograms = map[string]string{"jobs.c": `
#include <assert.h>
#include <pthread.h>
#include <unistd.h>
enum { RING = 8 };
static struct ring { pthread_mutex_t lock; pthread_cond_t filled; int job[RING], head, count; } ring = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0 };
static int next(void)
{
	pthread_mutex_lock(&ring.lock);
	WHEN (ring.count == 0)
		pthread_cond_wait(&ring.filled, &ring.lock); // CAUSE
	assert(ring.count > 0);
	int job = ring.job[ring.head];
	ring.head = (ring.head + 1) % RING;
	ring.count--;
	pthread_mutex_unlock(&ring.lock);
	return job;
}
static void *print(void *unused)
{
	for (;;) {
		int job = next();
		assert(job != WRONG);
		if (job < 0)
			return unused;
		usleep(30);
	}
}
static void add(int job)
{
	for (;; usleep(20)) {
		pthread_mutex_lock(&ring.lock);
		if (ring.count < RING)
			break;
		pthread_mutex_unlock(&ring.lock);
	}
	ring.job[(ring.head + ring.count++) % RING] = job;
	pthread_cond_broadcast(&ring.filled);
	pthread_mutex_unlock(&ring.lock);
}
int main(void)
{
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, print, NULL);
	for (int i = 1; i < 40; i++) {
		add(i);
		usleep(60);
	}
	for (int i = 0; i < 3; i++)
		add(-1);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return 0;
}
`, "tickets.cpp": `
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <unistd.h>
struct Booth {
	std::mutex door;
	std::condition_variable arrived;
	std::deque<int> *line = new std::deque<int>;
	int take()
	{
		std::unique_lock<std::mutex> in(door);
		WHEN (line->empty())
			arrived.wait(in); // CAUSE
		if (line->empty())
			std::abort();
		int ticket = line->front();
		line->pop_front();
		return ticket;
	}
	void put(int ticket)
	{
		{
			std::lock_guard<std::mutex> in(door);
			line->push_back(ticket);
		}
		arrived.notify_all();
	}
};
static Booth *booth;
static void serve()
{
	for (int ticket; (ticket = booth->take()) != 0;)
		if (ticket == WRONG)
			std::abort();
}
int main()
{
	booth = new Booth;
	std::thread a(serve), b(serve), c(serve);
	for (int i = 1; i < 40; i++) {
		booth->put(i);
		usleep(60);
	}
	for (int i = 0; i < 3; i++)
		booth->put(0);
	a.join();
	b.join();
	c.join();
}
`}

// TestBlindWaitDecided: a test after the wait by which the program gives up is none by which it waits again.
func TestBlindWaitDecided(t *testing.T) {
	source := func(name string) string { return decidedPrograms[name] }
	names := func(d *evidence.Diagnosis, name string) bool { return namesWait(d, decidedPrograms[name]) }
	builds := []build{{"jobs.c", "gcc", "-O0"}, {"jobs.c", "clang", "-O2"}, {"tickets.cpp", "g++", "-O1"}, {"tickets.cpp", "clang++", "-O2"}}
	eachBuild(t, builds, source, "SIGABRT", func(t *testing.T, name string, d *evidence.Diagnosis) {
		if !names(d, name) {
			t.Errorf("causes %+v, unknown %+v", d.Causes, d.Unknown)
		}
	}, "-pthread", "-DWHEN=if", "-DWRONG=-9")
	t.Run("twin", func(t *testing.T) {
		eachBuild(t, builds[1:3], source, "SIGABRT", func(t *testing.T, name string, d *evidence.Diagnosis) {
			if names(d, name) {
				t.Errorf("a cause: %s", d.Causes[0].Summary)
			}
		}, "-pthread", "-DWHEN=while", "-DWRONG=7")
	})
}
