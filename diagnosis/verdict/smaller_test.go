package verdict_test

import (
	"slices"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// countedTwice are programs in which two threads look at a mark and set it with the lock taken twice, once only so that both may do it. What they do
// for each mark is counted under another lock, in an order that differs from run to run.
var countedTwice = map[string]string{"mapped.c": `#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
enum { NUMBERS = 6 };
static unsigned char *bits;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, pool = PTHREAD_MUTEX_INITIALIZER;
static int total;
static unsigned char *place(int i) { return bits + (uint32_t)i * 2654435761u % 60000; }
static int take(int i)
{
    int free;
    pthread_mutex_lock(&pool);
    free = !(*place(i) & 4);
    pthread_mutex_unlock(&pool);
    if (!free)
        return 0;
    if (i == 3)
        usleep(300);
    pthread_mutex_lock(&pool);
    *place(i) |= 4; // BUG
    pthread_mutex_unlock(&pool);
    return 1;
}
static void *work(void *pace)
{
    for (int i = 0; i < NUMBERS; i++) {
        usleep((unsigned)(uintptr_t)pace);
        if (!take(i))
            continue;
        pthread_mutex_lock(&lock);
        total += i;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}
int main(void)
{
    pthread_t t[2];
    bits = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++) {
        pthread_create(&t[i], NULL, work, (void *)(uintptr_t)(40 * (i + 1)));
        usleep(getpid() % 4 * 300);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    assert(total == 15);
    puts("good");
    return 0;
}
`, "seen.cc": `#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>
struct Register {
    std::mutex door, desk;
    std::vector<bool> seen = std::vector<bool>(40);
    long sum = 0, entries = 0;
};
static Register *book;
static bool first(int key)
{
    {
        std::lock_guard<std::mutex> in(book->door);
        if (book->seen[key])
            return false;
    }
    if (key == 21)
        usleep(300);
    std::lock_guard<std::mutex> in(book->door);
    book->seen[key] = true; // BUG
    return true;
}
static void enter(int pace)
{
    for (int key : {9, 33, 4, 21, 17, 2}) {
        usleep(pace);
        if (first(key)) {
            std::lock_guard<std::mutex> in(book->desk);
            book->sum = book->sum + key;
            book->entries++;
        }
    }
}
int main()
{
    book = new Register;
    std::thread a(enter, 30);
    usleep(getpid() % 4 * 300);
    std::thread b(enter, 70);
    a.join();
    b.join();
    if (book->sum != 86)
        abort();
    puts("good");
    return 0;
}
`}

// TestCountedTwice: with a passing run to compare with, the order in which threads count is no proved cause of what they count twice.
func TestCountedTwice(t *testing.T) {
	crashtest.TracesAccesses(t)
	for _, b := range []build{{"mapped.c", "gcc", "-O0"}, {"mapped.c", "clang", "-O2"}, {"seen.cc", "g++", "-O0"}, {"seen.cc", "clang++", "-O1"}} {
		t.Run(b.source+" "+b.compiler+" "+b.level, func(t *testing.T) {
			text := countedTwice[b.source]
			path := crashtest.Compile(t, crashtest.Program{Source: b.source, Text: text, Compiler: b.compiler, Flags: []string{b.level, "-pthread"}})
			fails, passes := recordedUntil(t, path, nil, "SIGABRT"), recordedUntil(t, path, nil, "exit 0")
			result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{fails.Dir}, Passing: []string{passes.Dir}, Replays: 1})
			if err != nil {
				t.Fatal(err)
			}
			bug := lineOf(text, "// BUG")
			for _, c := range result.Diagnosis.Causes {
				if c.Proof == evidence.Proved && (c.Interleaving == nil || !slices.ContainsFunc(c.Interleaving.Failing, func(a evidence.SeenAccess) bool {
					return a.Site != nil && a.Site.Line == bug
				})) {
					t.Errorf("proved: %s", c.Summary)
				}
			}
		})
	}
}
