package verdict_test

import (
	"slices"
	"testing"

	"diagnose/evidence"
)

// comparedPrograms give up as two values that should be equal are not. One of them is made wrongly at the line that is marked.
var comparedPrograms = map[string]string{
	// The value that is wrong is the result of a function, and the name in the condition is that of the other one.
	"bits.c": `#include <stdio.h>
#include <stdlib.h>
struct table { int count; int *of; };
__attribute__((noinline)) static int bits(int n)
{
	int i = 1;
	for (; i <= 8; i += 2) // MADE
		if ((1 << i) >= n)
			break;
	return i;
}
__attribute__((noinline)) static struct table *make(int count)
{
	if (count != 1 << bits(count))
		return NULL;
	struct table *t = malloc(sizeof(*t));
	t->count = count;
	t->of = calloc(count, sizeof(int));
	return t;
}
int main(int argc, char **argv)
{
	struct table *t = make(64 << (argc > 1));
	if (!t) {
		fputs("no table\n", stderr);
		return 3;
	}
	printf("%d\n", t->count);
	return 0;
}
`,
	// Both are members; one has counted what the other has not.
	"ledger.cpp": `#include <cstdio>
#include <cstdlib>
#include <vector>
struct Ledger {
	std::vector<int> rows;
	long sum = 0, given = 0;
};
__attribute__((noinline)) static void take(Ledger &l, int amount)
{
	l.given += amount;
	l.rows.push_back(amount);
}
__attribute__((noinline)) static void close(Ledger &l)
{
	for (unsigned i = 1; i < l.rows.size(); i++)
		l.sum += l.rows[i]; // MADE
}
__attribute__((noinline)) static void check(const Ledger &l)
{
	if (l.sum != l.given) {
		std::fputs("they differ\n", stderr);
		std::abort();
	}
}
int main(int argc, char **argv)
{
	Ledger l;
	for (int i = argc; i < 9; i++)
		take(l, 10 + i);
	close(l);
	check(l);
	return 0;
}
`,
}

// TestComparedValues: where a program gives up because of two values, and it is not known which is wrong, the way of each is told.
func TestComparedValues(t *testing.T) {
	text := func(source string) string { return comparedPrograms[source] }
	check := func(t *testing.T, source string, d *evidence.Diagnosis) {
		if len(d.Causes) > 0 {
			t.Errorf("a cause is named: %s", d.Causes[0].Summary)
		}
		made := lineOf(text(source), "// MADE")
		told := func(s evidence.CauseStep) bool { return s.Site != nil && s.Site.Line == made }
		for _, lead := range d.Leads {
			lead.Compared = slices.DeleteFunc(lead.Compared, func(v evidence.ComparedValue) bool { return v.Of != "" })
			if len(lead.Compared) == 2 && slices.ContainsFunc(lead.Compared, func(v evidence.ComparedValue) bool { return v.Value != "" && slices.ContainsFunc(v.Story, told) }) {
				return
			}
		}
		t.Errorf("no lead tells both values, and that one was made at line %d: %+v", made, d.Leads)
	}
	eachBuild(t, []build{{"bits.c", "gcc", "-O0"}, {"bits.c", "clang", "-O1"}}, text, "exit 3", check)
	eachBuild(t, []build{{"ledger.cpp", "g++", "-O2"}, {"ledger.cpp", "clang++", "-O0"}}, text, "SIGABRT", check)
}
