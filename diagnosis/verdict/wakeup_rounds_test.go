package verdict_test

import (
	"testing"

	"diagnose/evidence"
)

// roundPrograms look at a flag, and wait for a signal that may have come in between; and so again in each round.
var roundPrograms = map[string]string{"flush.c": `
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
enum { ROUNDS = 6 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, idle = PTHREAD_COND_INITIALIZER;
static atomic_int dirty;
static int flushed;
static void note(const char *s)
{
	if (write(1, s, 0) < 0)
		_exit(9);
	usleep(20000);
}
static void *flush(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		while (atomic_load(&dirty) == 0) {
			note("waiting");
			pthread_mutex_lock(&lock);
			pthread_cond_wait(&work, &lock); // CAUSE
			pthread_mutex_unlock(&lock);
		}
		int n = atomic_exchange(&dirty, 0);
		note("clean");
		pthread_mutex_lock(&lock);
		flushed += n;
		pthread_cond_signal(&idle);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}
int main(void)
{
	pthread_t t;
	alarm(5);
	pthread_create(&t, NULL, flush, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		usleep(i == 3 ? 10000 : 70000);
		atomic_fetch_add(&dirty, 1);
		pthread_cond_signal(&work);
		pthread_mutex_lock(&lock);
		while (flushed <= i)
			pthread_cond_wait(&idle, &lock);
		pthread_mutex_unlock(&lock);
	}
	pthread_join(t, NULL);
	return 0;
}
`, "mail.cpp": `
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unistd.h>
struct Box {
	std::mutex door;
	std::condition_variable filled;
	std::atomic<int> letters{0};
	void take()
	{
		while (letters.load() == 0) {
			usleep(10000);
			std::unique_lock<std::mutex> in(door);
			filled.wait(in); // CAUSE
		}
		letters.fetch_sub(1);
	}
	void put()
	{
		letters.fetch_add(1);
		filled.notify_one();
	}
};
static Box *box;
static long sum;
static void read_letters()
{
	for (int i = 0; i < 8; i++) {
		box->take();
		for (int k = 0; k < 1000; k++)
			sum += k * i;
		if (write(1, &sum, 0) < 0)
			_exit(9);
	}
}
int main()
{
	alarm(5);
	box = new Box;
	std::thread reader(read_letters);
	for (int i = 0; i < 7; i++) {
		usleep(i == 2 ? 5000 : 40000);
		box->put();
	}
	usleep(5000);
	box->put();
	reader.join();
}
`}

// TestLostWakeupRounds: a thread whose wait ends, and that works and waits again for the next round, has not waited in vain.
func TestLostWakeupRounds(t *testing.T) {
	t.Parallel()
	source := func(name string) string { return roundPrograms[name] }
	builds := []build{{"flush.c", "gcc", "-O0"}, {"flush.c", "clang", "-O2"}, {"mail.cpp", "g++", "-O1"}, {"mail.cpp", "clang++", "-O2"}}
	eachBuild(t, builds, source, "SIGALRM", func(t *testing.T, name string, d *evidence.Diagnosis) {
		if len(d.Causes) == 0 {
			t.Fatalf("no cause; leads %+v; excluded %+v", d.Leads, d.Excluded)
		}
		if c := d.Causes[0]; c.Kind != evidence.CauseMissingWakeup || c.Site == nil || !isCause(roundPrograms[name], c.Site.Line) {
			t.Errorf("%s: %s", c.Kind, c.Summary)
		}
	}, "-pthread")
}
