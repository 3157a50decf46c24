package main

import (
	"bufio"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestRatioIsTheMedianWithinRounds(t *testing.T) {
	// The machine is ten times slower in the last round; the ratios are not
	// touched by it.
	r := &result{failed: map[string]error{}, pairs: map[string][]pair{recorded: {
		{it: sample{wall: 2}, native: sample{wall: 1}},
		{it: sample{wall: 3}, native: sample{wall: 1}},
		{it: sample{wall: 40}, native: sample{wall: 10}},
	}}}
	median, spread, ok := r.ratio(recorded, wall)
	if median != 3 || spread != 0.5 || !ok {
		t.Errorf("got %v ± %v, %v", median, spread, ok)
	}
	r.failed[recorded] = errors.New("crash")
	if _, _, ok := r.ratio(recorded, wall); ok {
		t.Error("a way that failed has a ratio")
	}
}

func TestFinish(t *testing.T) {
	s, err := finish(job{}, bufio.NewReader(strings.NewReader("4711\n2000000 1500000 500000 0\n")))
	if err != nil || s.wall != 2 || s.cpu != 1.5 || s.program != 1 {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, report := range []string{"", "4711\n", "4711\n1 1 0 3\n"} {
		if s, err := finish(job{}, bufio.NewReader(strings.NewReader(report))); err == nil {
			t.Errorf("%q: no error, but %+v", report, s)
		}
	}
}

// made has one round with the given ratios.
func made(p program, record, replay float64) *result {
	base := sample{wall: 1, cpu: 1, program: 1}
	return &result{program: p, failed: map[string]error{}, native: []sample{base}, log: logged{seconds: 1}, pairs: map[string][]pair{
		recorded: {{sample{wall: record, cpu: record, program: record}, base}},
		replayed: {{sample{wall: replay}, base}},
	}}
}

func TestGoals(t *testing.T) {
	results := []*result{
		made(program{name: "half", replayed: 100}, 0.5, 1),
		made(program{name: "twice", replayed: 100}, 2, 1.75),
		made(program{name: "own", own: true, goal: 1.5, replayed: 100}, 3, 1),
	}
	if mean, n := geometricMean(results, recorded, wall); math.Abs(mean-1) > 1e-9 || n != 2 {
		t.Errorf("the geometric mean is %v over %d", mean, n)
	}
	results[2].failed[replayed] = errors.New("it diverged from the recording")
	var out strings.Builder
	report(&out, results)
	for _, want := range []string{
		"| twice | 1e+03 | 1e+03 | 2.00 |",
		"| real programs recorded, geometric mean of 2, wall time: at most 1.03 | 1.000 | met |",
		"| own: at most 1.5 | 3.00 ± 0.00 | **missed** by 100 % |",
		"| replay: at most 1.5 | 1 of 3 | **missed**: twice (1.75), own (fails) |",
		"- own, replay: it diverged from the recording",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}
