package verdict_test

import (
	"strings"
	"testing"

	"diagnose/evidence"
)

// withheldPrograms read memory that was freed at the line that is marked, and fail later by what they read.
var withheldPrograms = map[string]string{
	// A destructor that the source does not have frees it, in a call from the line.
	"nodes.cpp": `#include <cstdio>
#include <string>
#include <vector>
struct Leaf { std::vector<int> v; int n; };
struct Node { Leaf leaf; std::string name; };
static Node *last;
static int table[8];
__attribute__((noinline)) static void drop(std::vector<Node *> &all)
{
	for (Node *n : all)
		delete n; // CAUSE
}
int main()
{
	std::vector<Node *> all;
	for (int i = 0; i < 3; i++) {
		all.push_back(new Node{{{1, 2, 3}, i}, "n"});
		last = all.back();
	}
	int *data = last->leaf.v.data();
	drop(all);
	table[data[0]] = 3;
	std::printf("%d\n", table[1]);
	return 0;
}
`,
	// The sum has the words of a freed account in it, and is checked much later.
	"accounts.c": `#include <stdio.h>
#include <stdlib.h>
struct account { long owner, balance; };
struct bank { struct account *of[6]; long sum; };
__attribute__((noinline)) static void close_account(struct bank *b, int n)
{
	free(b->of[n]); // CAUSE
}
__attribute__((noinline)) static void add(struct bank *b)
{
	for (int i = 0; i < 6; i++)
		b->sum += b->of[i]->owner;
}
__attribute__((noinline)) static void check(const struct bank *b, long want)
{
	if (b->sum != want)
		abort();
}
int main(void)
{
	struct bank b = {{0}, 0};
	for (int i = 0; i < 6; i++) {
		b.of[i] = malloc(sizeof(struct account));
		*b.of[i] = (struct account){i + 1, 0};
	}
	close_account(&b, 2);
	add(&b);
	puts("added");
	check(&b, 21);
	return 0;
}
`,
}

// TestWithheldFrees: that a program fails by what it read in freed memory is proved by a run in which the memory is not freed, also where the failing
// access is another one. A free in code that the compiler made is named by the code that called it.
func TestWithheldFrees(t *testing.T) {
	text := func(source string) string { return withheldPrograms[source] }
	check := func(t *testing.T, source string, d *evidence.Diagnosis) {
		if len(d.Causes) == 0 {
			t.Fatalf("unknown: %+v; leads %+v", d.Unknown, d.Leads)
		}
		c := &d.Causes[0]
		if c.Kind != evidence.CauseUseAfterFree || c.Proof != evidence.Proved || c.Site == nil || !isCause(text(source), c.Site.Line) || strings.Contains(c.Summary, "~") {
			t.Errorf("%s [%s, %s], experiments %+v", c.Summary, c.Kind, c.Proof, c.Experiments)
		}
	}
	eachBuild(t, []build{{"nodes.cpp", "g++", "-O0"}, {"nodes.cpp", "clang++", "-O0"}}, text, "SIGSEGV", check)
	eachBuild(t, []build{{"accounts.c", "gcc", "-O0"}, {"accounts.c", "clang", "-O2"}, {"accounts.c", "gcc", "-O2"}}, text, "SIGABRT", check)
}
