package verdict_test

import (
	"testing"

	"diagnose/evidence"
)

// queueHead and queueMain are a program whose threads take numbers from a queue, without what each thread does.
const (
	queueHead = `
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
struct queue { pthread_mutex_t lock; pthread_cond_t more; int head, tail, items[64], done; };
static struct queue *q;
`
	queueMain = `
int main(void)
{
	q = calloc(1, sizeof *q);
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->more, NULL);
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, work, NULL);
	for (int i = 1; i <= 40; i++) {
		pthread_mutex_lock(&q->lock);
		q->items[q->tail++ % 64] = i;
		pthread_cond_broadcast(&q->more);
		pthread_mutex_unlock(&q->lock);
		usleep(50);
	}
	pthread_mutex_lock(&q->lock);
	q->done = 1;
	pthread_cond_broadcast(&q->more);
	pthread_mutex_unlock(&q->lock);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return 0;
}
`
)

// namesWait reports whether the first cause is the wait that is marked in a source text.
func namesWait(d *evidence.Diagnosis, text string) bool {
	return len(d.Causes) > 0 && d.Causes[0].Kind == evidence.CauseAtomicity && d.Causes[0].Site != nil && isCause(text, d.Causes[0].Site.Line)
}

// TestBlindWait: a thread that waits for a condition variable once continues although another thread was faster. That is found in one recording, without accesses
// being traced. A program that tests again, and fails for another reason, names no wait.
func TestBlindWait(t *testing.T) {
	text := map[string]string{
		"numbers.c": queueHead + `
static void *work(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&q->lock);
		WHEN (q->head == q->tail && !q->done)
			pthread_cond_wait(&q->more, &q->lock); // CAUSE
		if (q->done && q->head == q->tail) {
			pthread_mutex_unlock(&q->lock);
			return unused;
		}
		int item = q->items[q->head++ % 64];
		if (item == WRONG)
			abort();
		pthread_mutex_unlock(&q->lock);
	}
}
` + queueMain,
		"list.c": `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
struct item { int number; struct item *next; };
struct list { struct item *first; int taken; pthread_mutex_t lock; pthread_cond_t filled; };
static struct list *l;
__attribute__((noinline)) static struct item *take(struct list *l)
{
	pthread_mutex_lock(&l->lock);
	WHEN (!l->first)
		pthread_cond_wait(&l->filled, &l->lock); // CAUSE
	if (HANDLED && !l->first) {
		pthread_mutex_unlock(&l->lock);
		return NULL;
	}
	struct item *i = l->first;
	l->first = i->next;
	l->taken++;
	pthread_mutex_unlock(&l->lock);
	return i;
}
static void *work(void *unused)
{
	for (int n = 0; n < 12; n++) {
		struct item *i = take(l);
		if (HANDLED && !i) {
			n--;
			continue;
		}
		if (i->number == WRONG)
			l = NULL;
		free(i);
	}
	return unused;
}
int main(void)
{
	l = calloc(1, sizeof *l);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->filled, NULL);
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, work, NULL);
	struct list *own = l;
	for (int n = 0; n < 36; n++) {
		struct item *i = malloc(sizeof *i);
		i->number = n;
		pthread_mutex_lock(&own->lock);
		i->next = own->first;
		own->first = i;
		pthread_cond_broadcast(&own->filled);
		pthread_mutex_unlock(&own->lock);
		usleep(80);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return 0;
}
`,
		"stack.cc": `
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <unistd.h>
struct stack {
	int items[64], *top = items + 1;
	bool empty() const { return top == items + 1; }
	void push(int item) { *top++ = item; }
	int pop() { return *--top; }
};
static std::mutex m;
static std::condition_variable c;
static stack s;
static void work()
{
	for (int n = 0; n < 10; n++) {
		std::unique_lock<std::mutex> lock(m);
		WHEN (s.empty())
			c.wait(lock); // CAUSE
		int item = s.pop();
		if (item == WRONG)
			abort();
	}
}
int main()
{
	std::thread a(work), b(work), d(work);
	for (int i = 1; i <= 30; i++) {
		{
			std::lock_guard<std::mutex> lock(m);
			s.push(i);
		}
		c.notify_all();
		usleep(80);
	}
	a.join();
	b.join();
	d.join();
	return 0;
}
`,
	}
	source := func(name string) string { return text[name] }
	names := func(d *evidence.Diagnosis, name string) bool { return namesWait(d, text[name]) }
	for _, x := range []struct {
		build
		ends, wrong, other string
	}{
		{build{"numbers.c", "gcc", "-O1"}, "SIGABRT", "0", "7"},
		{build{"numbers.c", "clang", "-O2"}, "SIGABRT", "0", "7"},
		{build{"list.c", "gcc", "-O0"}, "SIGSEGV", "-1", "7"},
		{build{"list.c", "gcc", "-O2"}, "SIGSEGV", "-1", "7"},
		{build{"stack.cc", "g++", "-O2"}, "SIGABRT", "0", "7"},
	} {
		eachBuild(t, []build{x.build}, source, x.ends, func(t *testing.T, name string, d *evidence.Diagnosis) {
			if !names(d, name) {
				t.Errorf("causes %+v, unknown %+v", d.Causes, d.Unknown)
			}
		}, "-pthread", "-DWHEN=if", "-DHANDLED=0", "-DWRONG="+x.wrong)
		// Twins test again: where they wait, or after that.
		for _, flags := range [][]string{{"-DWHEN=while", "-DHANDLED=0"}, {"-DWHEN=if", "-DHANDLED=1"}} {
			if flags[1] == "-DHANDLED=1" && x.source != "list.c" {
				continue
			}
			t.Run("twin"+flags[1], func(t *testing.T) {
				eachBuild(t, []build{x.build}, source, x.ends, func(t *testing.T, name string, d *evidence.Diagnosis) {
					if names(d, name) {
						t.Errorf("a cause: %s", d.Causes[0].Summary)
					}
				}, append(flags, "-pthread", "-DWRONG="+x.other)...)
			})
		}
	}
}

// TestBlindWaitOfAnother: main finds that what the other threads have counted is wrong, and the wait after which one of them continued is named. A program whose
// threads test again, and which counts wrongly for another reason, names no wait.
func TestBlindWaitOfAnother(t *testing.T) {
	text := map[string]string{
		"box.c": `
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
struct box { pthread_mutex_t lock; pthread_cond_t full; int n, taken, done; };
static struct box *b;
static void *taker(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&b->lock);
		WHEN (b->n == 0 && !b->done)
			pthread_cond_wait(&b->full, &b->lock); // CAUSE
		if (b->done) {
			pthread_mutex_unlock(&b->lock);
			return unused;
		}
		b->n--;
		b->taken++;
		pthread_mutex_unlock(&b->lock);
		usleep(20);
	}
}
int main(void)
{
	b = calloc(1, sizeof *b);
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->full, NULL);
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, taker, NULL);
	int put = 0;
	for (int i = 0; i < 8; i++) {
		pthread_mutex_lock(&b->lock);
		b->n++;
		put += !(MISCOUNTED && i == 5);
		pthread_cond_broadcast(&b->full);
		pthread_mutex_unlock(&b->lock);
		usleep(60);
	}
	usleep(2000);
	pthread_mutex_lock(&b->lock);
	b->done = 1;
	pthread_cond_broadcast(&b->full);
	pthread_mutex_unlock(&b->lock);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	assert(b->taken <= put);
	return 0;
}
`,
		"ring.cc": `
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <unistd.h>
struct ring {
	std::mutex m;
	std::condition_variable filled;
	unsigned in = 0, out = 0;
	long of[16] = {}, sum = 0;
};
static ring r;
static void work()
{
	for (int n = 0; n < 3; n++) {
		std::unique_lock<std::mutex> lock(r.m);
		WHEN (r.in == r.out)
			r.filled.wait(lock); // CAUSE
		r.sum += r.of[r.out++ % 16];
	}
}
int main()
{
	std::thread a(work), b(work), c(work);
	long given = 0;
	for (int i = 1; i <= 9; i++) {
		{
			std::lock_guard<std::mutex> lock(r.m);
			r.of[r.in++ % 16] = i;
			given += i == 5 && MISCOUNTED ? 0 : i;
		}
		r.filled.notify_all();
		usleep(80);
	}
	a.join();
	b.join();
	c.join();
	if (r.sum != given)
		abort();
	return 0;
}
`,
		// Each takes all that is there, and tests afterwards whether it got anything.
		"taken.c": `
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
struct queue { pthread_mutex_t lock; pthread_cond_t more; int work, total, done; };
static struct queue *q;
static void *taker(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&q->lock);
		if (q->work == 0 && !q->done)
			pthread_cond_wait(&q->more, &q->lock); // CAUSE
		int mine = q->work, done = q->done;
		q->work = 0;
		pthread_mutex_unlock(&q->lock);
		if (mine)
			__atomic_add_fetch(&q->total, mine, __ATOMIC_SEQ_CST);
		else if (done)
			return unused;
		usleep(20);
	}
}
int main(void)
{
	q = calloc(1, sizeof *q);
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->more, NULL);
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, taker, NULL);
	int put = 0;
	for (int i = 0; i < 8; i++) {
		pthread_mutex_lock(&q->lock);
		q->work++;
		put += !(MISCOUNTED && i == 5);
		pthread_cond_broadcast(&q->more);
		pthread_mutex_unlock(&q->lock);
		usleep(60);
	}
	pthread_mutex_lock(&q->lock);
	q->done = 1;
	pthread_cond_broadcast(&q->more);
	pthread_mutex_unlock(&q->lock);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	assert(q->total == put);
	return 0;
}
`}
	source := func(name string) string { return text[name] }
	names := func(d *evidence.Diagnosis, name string) bool { return namesWait(d, text[name]) }
	builds := []build{{"box.c", "gcc", "-O0"}, {"box.c", "clang", "-O2"}, {"ring.cc", "g++", "-O1"}}
	eachBuild(t, builds, source, "SIGABRT", func(t *testing.T, name string, d *evidence.Diagnosis) {
		if !names(d, name) {
			t.Errorf("causes %+v, unknown %+v", d.Causes, d.Unknown)
		}
	}, "-pthread", "-DWHEN=if", "-DMISCOUNTED=0")
	t.Run("twin", func(t *testing.T) {
		eachBuild(t, []build{builds[0], {"taken.c", "gcc", "-O0"}, {"taken.c", "clang", "-O2"}}, source, "SIGABRT", func(t *testing.T, name string, d *evidence.Diagnosis) {
			if names(d, name) {
				t.Errorf("a cause: %s", d.Causes[0].Summary)
			}
		}, "-pthread", "-DWHEN=while", "-DMISCOUNTED=1")
	})
}
