package verdict_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// handedOn are programs in which a bad value goes through stores that are as they should be. A cause may be proved only at the line of
// the bug, 0: nowhere.
var handedOn = []struct {
	crashtest.Program
	bug int
}{
	{crashtest.Program{Source: "sum.c", Flags: []string{"-O0"}, Text: `#include <stdio.h>
struct book { int pages, lines[9]; };
static struct book book;
char shelves[64][1 << 20];
int last = 8;
__attribute__((noinline)) static void clear(struct book *b)
{
    int *p = &b->lines[last];
    while (p >= b->lines - 1)
        *p-- = 900;
}
__attribute__((noinline)) static int first(long at) { return shelves[at][0]; }
int main(void)
{
    book.pages = 49;
    clear(&book);
    long sum = 751;
    sum += book.pages;
    printf("%d\n", first(sum - 751));
    return 0;
}
`}, 10},
	{crashtest.Program{Source: "product.c", Compiler: "clang", Flags: []string{"-O1"}, Text: `#include <stdio.h>
#include <string.h>
struct cell { char name[4]; unsigned width; };
static struct cell cells[4];
char table[64][1 << 20];
static unsigned kept;
volatile unsigned height = 640;
__attribute__((noinline)) static void name(struct cell *c, const char *text) { memcpy(c->name, text, strlen(text) + 1); }
__attribute__((noinline)) static void keep(const struct cell *c, unsigned h) { kept = c->width ^ h; }
__attribute__((noinline)) static int first(unsigned at) { return table[at][0]; }
int main(int argc, char **argv)
{
    (void)argv;
    cells[1].width = 641;
    name(&cells[1], argc > 5 ? "a" : "abcdzy");
    keep(&cells[1], height);
    printf("%d\n", first(kept));
    return 0;
}
`}, 8},
	{crashtest.Program{Source: "early.c", Flags: []string{"-O2", "-pthread"}, Text: `#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
static struct { int ready, value; } board;
static int seen, used;
char shelves[64][1 << 20];
static sem_t ready, read_it;
static void *write_board(void *arg)
{
    board.ready = 1;
    sem_post(&ready);
    sem_wait(&read_it);
    board.value = 14;
    return arg;
}
static void *read_board(void *arg)
{
    sem_wait(&ready);
    if (board.ready)
        seen = board.value;
    sem_post(&read_it);
    return arg;
}
__attribute__((noinline)) static void use(int value) { used = value; }
int main(void)
{
    pthread_t one, two;
    board.value = 777;
    if (sem_init(&ready, 0, 0) || sem_init(&read_it, 0, 0) || pthread_create(&one, NULL, write_board, NULL) || pthread_create(&two, NULL, read_board, NULL))
        return 1;
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    use(seen);
    printf("%d\n", shelves[used][0]);
    return 0;
}
`}, 0},
	{crashtest.Program{Source: "unstored.cc", Compiler: "clang++", Flags: []string{"-O0", "-pthread"}, Text: `#include <cstdio>
#include <mutex>
#include <thread>
#include <unistd.h>
struct page { int number; };
static std::mutex lock;
static struct { int used; page *pages[4]; } book;
static page none, *taken = &none;
__attribute__((noinline)) static void add(page *p)
{
    std::unique_lock<std::mutex> held(lock);
    int at = book.used++;
    held.unlock();
    usleep(100000);
    held.lock();
    book.pages[at] = p;
}
__attribute__((noinline)) static void take()
{
    int used;
    do {
        usleep(10000);
        std::lock_guard<std::mutex> held(lock);
        used = book.used;
    } while (!used);
    std::lock_guard<std::mutex> held(lock);
    taken = book.pages[used - 1];
}
int main()
{
    page first = { 3 };
    std::thread one(add, &first);
    take();
    one.join();
    std::printf("%d\n", taken->number);
}
`}, 12},
	{crashtest.Program{Source: "moved.c", Flags: []string{"-O1", "-pthread"}, Text: `#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
struct order { long price; struct order *before; };
static struct order *last;
static long price, *most;
static void *set_price(void *arg)
{
    usleep(100000);
    most = &price;
    return arg;
}
__attribute__((noinline)) static void keep(struct order *o)
{
    o->price = (long)most;
    last = o;
}
__attribute__((noinline)) static long paid(const struct order *o) { return *(long *)o->price; }
int main(void)
{
    static struct order only;
    pthread_t one;
    only.price = (long)&price;
    if (pthread_create(&one, NULL, set_price, NULL))
        return 1;
    keep(&only);
    pthread_join(one, NULL);
    printf("%ld\n", paid(last));
    return 0;
}
`}, 15},
}

// TestHandedOn: a store that hands a bad value on is not proved to be the cause, though the run passes without it.
func TestHandedOn(t *testing.T) {
	crashtest.TracesAccesses(t)
	for i := range handedOn {
		p := &handedOn[i]
		t.Run(p.Source, func(t *testing.T) {
			d := diagnosed(t, p.Program, nil, "SIGSEGV").Diagnosis
			for _, c := range d.Causes {
				if c.Proof == evidence.Proved && (c.Site == nil || c.Site.Line != p.bug) {
					t.Errorf("%q, line %d", c.Summary, c.Site.Line)
				}
			}
			if len(d.Causes)+len(d.Leads) == 0 {
				t.Error("the value was not followed")
			}
		})
	}
}
