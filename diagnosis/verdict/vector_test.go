package verdict_test

import (
	"testing"

	"diagnose/evidence"
)

// vectorPrograms read memory of a std::vector past its elements at the line that is marked CAUSE, and fail by the value that it has.
var vectorPrograms = map[string]string{
	"rows.cpp": `#include <cstdio>
#include <vector>
struct Row { int cells[4]; };
struct Table {
	int width = 4;
	std::vector<Row *> rows;
};
[[gnu::noinline]] static long sum(const Table &t)
{
	long n = 0;
	for (std::size_t i = 0; i <= t.rows.size(); i++) {
		const Row *r = t.rows[i]; // CAUSE
		for (int k = 0; k < t.width; k++) // CAUSE
			n += r->cells[k];
	}
	return n;
}
int main()
{
	static Row all[5];
	static Table t;
	for (Row &r : all) {
		r.cells[1] = 3;
		t.rows.push_back(&r);
	}
	std::printf("%ld\n", sum(t));
}
`,
	"undo.cpp": `#include <cstdio>
#include <string>
#include <vector>
struct Step { int kind; int per; std::string text; };
class History {
	std::vector<Step> steps;
public:
	void add(int kind, const char *text) { steps.push_back({kind, kind + 1, text}); }
	void drop() { steps.pop_back(); steps[0].per = 2; }
	[[gnu::noinline]] int share(std::size_t at) const { return 1000 / (steps[at].per - 3); } // CAUSE
};
int main()
{
	static History h;
	h.add(4, "insert a line that is long enough for the heap");
	h.add(5, "replace a word by another one of the same length");
	h.add(2, "join");
	std::size_t last = 2;
	int n = h.share(0);
	h.drop();
	std::printf("%d\n", n + h.share(1));
	std::printf("%d\n", h.share(last));
}
`,
	"queue.cpp": `#include <cstdio>
#include <cstdlib>
#include <vector>
struct Job { const char *name; int left; };
static std::vector<Job> jobs;
[[gnu::noinline]] static void finish(const char *name)
{
	for (auto it = jobs.begin(); it != jobs.end(); ++it)
		if (it->name == name) {
			it->name = nullptr;
			jobs.erase(it);
			return;
		}
}
[[gnu::noinline]] static int letters(std::size_t at)
{
	int n = 0;
	for (const char *p = jobs[at].name; *p; p++) // CAUSE
		n++;
	return n;
}
int main()
{
	static const char *names[] = {"build", "test", "publish"};
	for (const char *name : names)
		jobs.push_back({name, 1});
	jobs.reserve(16);
	std::size_t newest = jobs.size() - 1;
	std::printf("%d\n", letters(newest));
	finish(names[2]);
	std::printf("%d\n", letters(newest));
}
`,
}

// vectorTwins read elements that are there, or memory that is no std::vector's. The bad value was stored at the line that is marked CAUSE.
var vectorTwins = map[string]string{
	// The destructor of an element runs when the vector does not count it any more.
	"popped.cpp": `#include <cstdio>
#include <vector>
struct Pool { int used; };
struct Lease {
	Pool *pool;
	~Lease() { pool->used--; }
};
static Pool pool;
static std::vector<Lease> leases;
[[gnu::noinline]] static void detach(Lease &l) { l.pool = nullptr; } // CAUSE
[[gnu::noinline]] static void close()
{
	while (!leases.empty())
		leases.pop_back();
}
int main()
{
	leases.reserve(4);
	for (int i = 0; i < 3; i++) {
		leases.emplace_back();
		leases.back().pool = &pool;
		pool.used++;
	}
	detach(leases[1]);
	close();
	std::printf("%d\n", pool.used);
}
`,
	// The three pointers are those of a queue, which is read from its second one on.
	"ring.cpp": `#include <cstdio>
#include <cstdlib>
struct Ring {
	const char **first, **next, **end;
	[[gnu::noinline]] const char *at(std::size_t i) const { return first[i]; }
};
[[gnu::noinline]] static void put(Ring &r, std::size_t i, const char *text) { r.first[i] = text; }
[[gnu::noinline]] static void cancel(Ring &r, std::size_t i) { r.first[i] = nullptr; } // CAUSE
[[gnu::noinline]] static int letters(const Ring &r, std::size_t i)
{
	int n = 0;
	for (const char *p = r.at(i); *p; p++)
		n++;
	return n;
}
int main()
{
	static Ring r;
	r.first = static_cast<const char **>(std::malloc(64));
	r.next = r.first;
	r.end = r.first + 8;
	for (std::size_t i = 0; i < 8; i++)
		put(r, i, "text");
	cancel(r, 5);
	int n = 0;
	for (std::size_t i = 0; i < 8; i++, r.next++)
		n += letters(r, i);
	std::printf("%d\n", n);
}
`,
}

// Nothing is said of the end of a vector where the element is there, or the memory is none of a vector.
func TestWithinElements(t *testing.T) {
	for source, text := range vectorTwins {
		builds := []build{{source, "g++", "-O2"}, {source, "clang++", "-O1"}}
		eachBuild(t, builds, func(string) string { return text }, "SIGSEGV", func(t *testing.T, source string, d *evidence.Diagnosis) {
			if len(d.Causes) == 0 {
				t.Fatalf("no cause; leads: %+v", d.Leads)
			}
			if c := &d.Causes[0]; c.Site == nil || !isCause(text, c.Site.Line) {
				t.Errorf("%s: %s (%s)", c.Kind, c.Summary, c.Proof)
			}
		})
	}
}

// An element that a vector does not have any more, or not yet, is told as that, and not what its memory holds.
func TestBehindElements(t *testing.T) {
	for source, ends := range map[string]string{"rows.cpp": "SIGSEGV", "undo.cpp": "SIGFPE", "queue.cpp": "SIGSEGV"} {
		text := vectorPrograms[source]
		builds := []build{{source, "g++", "-O0"}, {source, "g++", "-O1"}, {source, "g++", "-O2"}, {source, "clang++", "-O0"}, {source, "clang++", "-O2"}}
		eachBuild(t, builds, func(string) string { return text }, ends, func(t *testing.T, source string, d *evidence.Diagnosis) {
			if len(d.Causes) == 0 {
				t.Fatalf("no cause; leads: %+v", d.Leads)
			}
			if c := &d.Causes[0]; c.Basis != evidence.BasisBounds || c.Site == nil || !isCause(text, c.Site.Line) {
				t.Errorf("%s: %s (%s)", c.Kind, c.Summary, c.Proof)
			}
		})
	}
}
