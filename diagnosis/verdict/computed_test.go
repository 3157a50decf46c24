package verdict_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// TestComputed: the failure goes with each value of which the bad one was computed, and so without the store of such a value. That proves nothing of
// it: it may be good, and the computation wrong. A divisor leads to its computation. What was passed on as it is can be proved where it was made.
func TestComputed(t *testing.T) {
	const head = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static struct { int (*run[8])(int); long pad[64]; } table;
static struct { int width, index; } config;
static struct cursor { long slot; } *cursor;
static int one(int n) { return n + 1; }
__attribute__((noinline)) static int call(void) { return table.run[cursor->slot](3); }
`
	const run = `
int main(void)
{
	cursor = calloc(1, sizeof *cursor);
	for (int i = 0; i < 8; i++)
		table.run[i] = one;
	parse("7");
	advance();
	printf("%d\n", call());
	return 0;
}
`
	for name, program := range map[string]struct {
		text, ends string
		proved     bool
	}{
		"one more": {head + `
__attribute__((noinline)) static void parse(const char *text) { config.width = 3; config.index = atoi(text); }
__attribute__((noinline)) static void advance(void) { cursor->slot = config.index + 1; /* BUG */ }
` + run, "SIGSEGV", true},
		"passed on": {head + `
__attribute__((noinline)) static void parse(const char *text) { config.width = 3; config.index = atoi(text) + 1; /* BUG */ }
__attribute__((noinline)) static void advance(void) { cursor->slot = config.index; }
` + run, "SIGSEGV", true},
		"scaled": {head + `
static char *arena;
__attribute__((noinline)) static void parse(const char *text) { config.width = 3; config.index = atoi(text); }
__attribute__((noinline)) static void advance(void) { arena += (long)config.index << 32; /* BUG */ }
int main(void)
{
	arena = calloc(1, 64);
	parse("5");
	advance();
	printf("%d\n", *arena);
	return 0;
}
`, "SIGSEGV", false},
		"divisor": {head + `
static struct { long total; int samples, dropped; } rate;
__attribute__((noinline)) static void sample(long v) { rate.total += v; rate.samples++; }
__attribute__((noinline)) static void drop(void) { rate.dropped++; }
__attribute__((noinline)) static long mean(void)
{
	int n = rate.samples - rate.dropped * 2; /* BUG */
	return rate.total / n;
}
int main(void)
{
	for (int i = 0; i < 6; i++)
		sample(i * 10);
	for (int i = 0; i < 3; i++)
		drop();
	printf("%ld\n", mean());
	return 0;
}
`, "SIGFPE", false},
	} {
		line := lineOf(program.text, "/* BUG */")
		for _, flags := range [][]string{{"-O0"}, {"-O2"}} {
			for _, compiler := range []string{"gcc", "clang"} {
				t.Run(name+" "+compiler+flags[0], func(t *testing.T) {
					result := diagnosed(t, crashtest.Program{Source: "computed.c", Text: program.text, Compiler: compiler, Flags: append(flags, "-g", "-w")}, nil, program.ends)
					proved := false
					for _, c := range result.Diagnosis.Causes {
						if c.Proof != evidence.Proved {
							continue
						}
						if proved = true; c.Site == nil || c.Site.Line != line {
							t.Errorf("%s: proved", c.Summary)
						}
					}
					leads := result.Diagnosis.Leads
					if program.ends == "SIGFPE" && (len(leads) == 0 || leads[0].Site == nil || leads[0].Site.Line != line) {
						t.Errorf("the leads are %+v", leads)
					}
					if program.proved && !proved && flags[0] == "-O0" {
						t.Errorf("nothing is proved: %+v", result.Diagnosis.Causes)
					}
				})
			}
		}
	}
}
