package main

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestRatioIsTheMedianWithinRounds(t *testing.T) {
	// The machine is ten times slower in the last round; the ratios are not
	// touched by it.
	r := &result{failed: map[string]error{}, pairs: map[string][]pair{"agent": {
		{it: sample{cpu: 2}, glibc: sample{cpu: 1}},
		{it: sample{cpu: 3}, glibc: sample{cpu: 1}},
		{it: sample{cpu: 40}, glibc: sample{cpu: 10}},
	}}}
	median, spread, ok := r.ratio("agent", cpu)
	if median != 3 || spread != 0.5 || !ok {
		t.Errorf("got %v ± %v, %v", median, spread, ok)
	}
	r.failed["agent"] = errors.New("crash")
	if _, _, ok := r.ratio("agent", cpu); ok {
		t.Error("an allocator that failed has a ratio")
	}
}

// made has one round with the given costs.
func made(name string, own bool, threads int, glibcPeak float64, costs map[string]sample) *result {
	r := &result{program: program{name: name, own: own, threads: threads}, failed: map[string]error{}, pairs: map[string][]pair{}}
	base := sample{cpu: 1, wall: 1, peak: glibcPeak}
	r.base = []sample{base}
	for a, s := range costs {
		r.pairs[a] = []pair{{s, base}}
	}
	return r
}

func TestGoals(t *testing.T) {
	const mib = 1 << 20
	results := []*result{
		made("ahead", true, 1, 10*mib, map[string]sample{"agent": {cpu: 0.5, wall: 1, peak: 13 * mib}, "scudo": {cpu: 1.5, wall: 1, peak: 1}}),
		made("slower", true, 1, 10*mib, map[string]sample{"agent": {cpu: 2, wall: 1, peak: 14 * mib}, "scudo": {cpu: 1.5, wall: 1, peak: 1}}),
	}
	if mean, n := geometricMean(results, true, allocator{name: "agent"}, cpu); math.Abs(mean-1) > 1e-9 || n != 2 {
		t.Errorf("the geometric mean is %v over %d", mean, n)
	}
	if misses, n := slowerThanScudo(results, true); n != 2 || len(misses) != 1 || !strings.HasPrefix(misses[0], "slower (1.33 ± 0.00 of") {
		t.Errorf("slower than scudo: %v of %d", misses, n)
	}
	// 10 MiB allow 12.5 and the budget of a thread.
	if misses, n := overPeak(results, true); n != 2 || len(misses) != 1 || !strings.HasPrefix(misses[0], "slower (1.40, allowed 1.35") {
		t.Errorf("over the peak: %v of %d", misses, n)
	}
	var out strings.Builder
	if err := report(&out, []allocator{{name: glibc}, {name: "agent"}, {name: "scudo"}}, results); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| ahead | 1 | 0.50 | 1.50 |",
		"| **geometric mean, malloc-heavy** | | **1.00** | **1.50** |",
		"| geometric mean of CPU time at most 1.00 of glibc's | malloc-heavy | 1.00 | met |",
		"| ahead of scudo in CPU time on each | malloc-heavy | 1 of 2 | **missed**: slower (1.33 ± 0.00 of scudo's) |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	results[0].failed["agent"] = errors.New("its output differs")
	if err := report(&out, []allocator{{name: glibc}, {name: "agent"}}, results); err == nil {
		t.Error("a failure of the agent is no error")
	}
}
