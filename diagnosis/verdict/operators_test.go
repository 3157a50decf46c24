package verdict_test

import (
	"testing"

	"diagnose/evidence"
)

// operatorPrograms have objects from C++'s operators: the line that is marked frees one too early, or writes outside of one.
var operatorPrograms = map[string]string{
	"owners.cpp": `#include <cstdio>
#include <memory>
#include <vector>
struct Page {
	int number;
	long words[6];
	explicit Page(int n) : number(n), words{} {}
};
static std::vector<std::shared_ptr<Page>> open_pages, recent;
__attribute__((noinline)) static void print(int number)
{
	for (auto &p : open_pages)
		if (p->number == number)
			recent.push_back(std::shared_ptr<Page>(p.get()));
}
__attribute__((noinline)) static void close_all()
{
	open_pages.clear(); // CAUSE
	std::puts("closed");
}
__attribute__((noinline)) static void forget()
{
	recent.clear();
}
int main()
{
	for (int i = 0; i < 5; i++)
		open_pages.push_back(std::make_unique<Page>(i));
	print(3);
	close_all();
	std::printf("%zu recent\n", recent.size());
	forget();
}
`,
	"frames.cpp": `#include <cstdio>
#include <cstring>
#include <string>
struct Frame {
	unsigned char size;
	unsigned char *bytes;
	explicit Frame(size_t n) : size(n), bytes(new unsigned char[size]) {}
	~Frame() { delete[] bytes; }
};
__attribute__((noinline)) static void fill(Frame &f, const std::string &text)
{
	std::memcpy(f.bytes, text.data(), text.size()); // CAUSE
}
int main()
{
	for (size_t n : {20, 100, 300}) {
		std::string text(n, 'x');
		Frame f(text.size());
		fill(f, text);
		std::printf("%d\n", f.bytes[0]);
	}
}
`,
	"columns.cpp": `#include <cstdio>
#include <new>
struct Table {
	int columns;
	long *sums;
};
__attribute__((noinline)) static void count(Table *t, const int *values, int n)
{
	for (int i = 0; i < n; i++)
		t->sums[i % (t->columns + 1)] += values[i]; // CAUSE
}
__attribute__((noinline)) static void drop(Table *t)
{
	operator delete[](t->sums, std::nothrow);
}
int main()
{
	static const int values[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
	Table t = {6, new (std::nothrow) long[6]()};
	count(&t, values, 11);
	std::printf("%ld\n", t.sums[2]);
	drop(&t);
}
`,
}

// TestOperators checks that experiments change what C++'s operators allocate and free, as they change malloc and free.
func TestOperators(t *testing.T) {
	t.Parallel()
	for source, kind := range map[string]evidence.CauseKind{"owners.cpp": evidence.CauseDoubleFree, "frames.cpp": evidence.CauseHeapOverflow, "columns.cpp": evidence.CauseHeapOverflow} {
		text := operatorPrograms[source]
		builds := []build{{source, "g++", "-O0"}, {source, "g++", "-O2"}, {source, "clang++", "-O1"}, {source, "clang++", "-O3"}}
		eachBuild(t, builds, func(string) string { return text }, "SIGABRT", func(t *testing.T, _ string, d *evidence.Diagnosis) {
			if len(d.Causes) == 0 {
				t.Fatalf("no cause; leads: %+v", d.Leads)
			}
			if c := d.Causes[0]; c.Kind != kind || c.Proof != evidence.Proved || c.Site == nil || !isCause(text, c.Site.Line) {
				t.Errorf("%s, %s: %s; %+v", c.Kind, c.Proof, c.Summary, c.Experiments)
			}
		}, "-std=c++17")
	}
}
