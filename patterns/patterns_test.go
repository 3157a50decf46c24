package patterns

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"diagnose/delta"
	"diagnose/evidence"
	"diagnose/internal/accesslog"
)

// find goes the whole way from texts; the first line of a text tells failing from
// passing ones.
func find(t testing.TB, threads []uint32, texts ...string) *Result {
	t.Helper()
	var failing, passing []*evidence.AccessLog
	for _, text := range texts {
		log := accesslog.Log(text)
		if log.Failed {
			failing = append(failing, log)
		} else {
			passing = append(passing, log)
		}
	}
	runs, err := delta.Align(failing, passing)
	if err != nil {
		t.Fatal(err)
	}
	return Find(delta.Compare(runs), Options{Threads: threads})
}

// lines are where a candidate's accesses are: "t1!14:R12".
func (r *Result) lines(c *Candidate) string {
	var parts []string
	log := r.Delta.Runs.Failing[c.Run].Log
	for _, i := range c.Accesses {
		a := &log.Accesses[i]
		parts = append(parts, fmt.Sprintf("%d", log.Contexts[a.Context].Site.Line))
	}
	return strings.Join(parts, " ")
}

func (r *Result) suspicious() []Candidate {
	return slices.DeleteFunc(slices.Clone(r.Candidates), func(c Candidate) bool { return !c.Suspicious() })
}

const (
	counterFails = `run failed
main t1
t1 create t2 worker
t1 create t3 worker
t2 R n 0 @10
t3 event
t3 R n 0 @10
t3 W n 0->1 @11
t2 event
t2 W n 0->1 @11
t1 join t2
t1 join t3
t1 R n 1 @30
`
	counterPasses = `main t1
t1 create t2 worker
t1 create t3 worker
t2 R n 0 @10
t2 event
t2 W n 0->1 @11
t3 event
t3 R n 1 @10
t3 W n 1->2 @11
t1 join t2
t1 join t3
t1 R n 2 @30
`
)

// cases have a failing and a passing run, what comes first, and the failing run
// of the fixed program, where nothing is suspicious.
var cases = []struct {
	name              string
	fails, passes     string
	pattern           evidence.PatternKind
	variables, lines  string
	missing, instead  string
	twin, twinPasses  string
	failed            uint32
	apart, interrupts bool
}{{
	name: "lost update", fails: counterFails, passes: counterPasses,
	pattern: evidence.PatternRWW, variables: "n", lines: "10 11 11", instead: "not interleaved",
	twin: `run failed
main t1
t1 create t2 worker
t1 create t3 worker
t2 lock L
t2 R n 0 @10
t2 W n 0->1 @11
t2 unlock L
t3 lock L
t3 R n 1 @10
t3 W n 1->2 @11
t3 unlock L
t1 join t2
t1 join t3
t1 R n 2 @30
`, failed: 1,
}, {
	name: "check then act under one lock twice",
	fails: `run failed
main t1
t1 create t2 payer
t1 create t3 payer
t2 lock L
t2 R balance 100 @10
t2 unlock L
t3 lock L
t3 R balance 100 @10
t3 unlock L
t3 lock L
t3 W balance 100->0 @14
t3 unlock L
t2 lock L
t2 R balance 0 @13
t2 W balance 0->18446744073709551516 @14
t2 unlock L
t2 R balance 18446744073709551516 @15
`,
	passes: `main t1
t1 create t2 payer
t1 create t3 payer
t2 lock L
t2 R balance 100 @10
t2 unlock L
t2 lock L
t2 R balance 100 @13
t2 W balance 100->0 @14
t2 unlock L
t3 lock L
t3 R balance 0 @10
t3 unlock L
`,
	pattern: evidence.PatternRWR, variables: "balance", lines: "10 14 13", missing: "L", instead: "payer at a.c:10 (payer) and payer at a.c:13 (payer) are not interleaved", failed: 2,
	twin: `run failed
main t1
t1 create t2 payer
t1 create t3 payer
t2 lock L
t2 R balance 100 @10
t2 R balance 100 @13
t2 W balance 100->0 @14
t2 unlock L
t3 lock L
t3 R balance 0 @10
t3 unlock L
`,
}, {
	name: "value set and looked at",
	fails: `run failed
main t1
t1 create t2 other
t1 W user 0->1 @5
t1 event
t2 W user 1->2 @20
t1 event
t1 R user 2 @7
`,
	passes: `main t1
t1 create t2 other
t2 W user 0->2 @20
t1 W user 2->1 @5
t1 event
t1 R user 1 @7
`,
	pattern: evidence.PatternWWR, variables: "user", lines: "5 20 7", failed: 1,
	twin: `run failed
main t1
t1 W user 0->1 @5
t1 R user 1 @7
t1 create t2 other
t2 W user 1->2 @20
`,
}, {
	name: "intermediate value seen",
	fails: `run failed
main t1
t1 create t2 reader
t1 W head 0->16 @5
t1 event
t2 R head 16 @20
t1 event
t1 W head 16->0 @7
`,
	passes: `main t1
t1 create t2 reader
t1 W head 0->16 @5
t1 event
t1 W head 16->0 @7
t2 R head 0 @20
`,
	pattern: evidence.PatternWRW, variables: "head", lines: "5 20 7", failed: 2,
	twin: `run failed
main t1
t1 create t2 reader
t1 lock L
t1 W head 0->16 @5
t1 W head 16->0 @7
t1 unlock L
t2 lock L
t2 R head 0 @20
t2 unlock L
`,
}, {
	name: "used behind its destruction",
	fails: `run failed
main t1
t1 W fifo 0->4096 @3
t1 create t2 consumer
t2 R fifo 4096 @21
t2 event
t2 R fifo 4096 @20
t1 W fifo 4096->0 @9
t2 event
t2 R fifo 0 @20
`,
	passes: `main t1
t1 W fifo 0->4096 @3
t1 create t2 consumer
t2 R fifo 4096 @20
t2 event
t2 R fifo 4096 @21
t2 event
t2 R fifo 4096 @20
t1 W fifo 4096->0 @9
`,
	pattern: evidence.PatternWR, variables: "fifo", lines: "9 20", instead: "comes before", failed: 2,
	twin: `run failed
main t1
t1 W fifo 0->4096 @3
t1 create t2 consumer
t2 R fifo 4096 @20
t2 event
t2 R fifo 4096 @20
t1 join t2
t1 W fifo 4096->0 @9
`,
}, {
	name: "used before it is there",
	fails: `run failed
main t1
t1 create t2 worker
t2 R handle 0 @20
`,
	passes: `main t1
t1 create t2 worker
t1 W handle 0->7 @5
t2 R handle 7 @20
`,
	pattern: evidence.PatternRW, variables: "handle", lines: "20", instead: "main at a.c:5 (main) comes before worker at a.c:20 (worker)", failed: 2,
	twin: `run failed
main t1
t1 W handle 0->7 @5
t1 create t2 worker
t2 R handle 7 @20
`,
}, {
	name: "written over too early",
	fails: `run failed
main t1
t1 create t2 callback
t2 W state 0->2 @20
t1 W state 2->1 @5
t1 R state 1 @9
`,
	passes: `main t1
t1 create t2 callback
t1 W state 0->1 @5
t2 W state 1->2 @20
t1 R state 2 @9
`,
	pattern: evidence.PatternWW, variables: "state", lines: "20 5", instead: "comes before", failed: 1,
	twin: `run failed
main t1
t1 W state 0->1 @5
t1 create t2 callback
t2 W state 1->2 @20
t1 join t2
t1 R state 2 @9
`,
}, {
	name: "handler between two looks",
	fails: `run failed
main t1
t1 R cols 120 @10
t1 event
t1 signal 28
t1 W cols 120->64 @40
t1 return
t1 R cols 64 @12
`,
	passes: `main t1
t1 R cols 120 @10
t1 event
t1 R cols 120 @12
t1 signal 28
t1 W cols 120->64 @40
t1 return
`,
	pattern: evidence.PatternRWR, variables: "cols", lines: "10 40 12", instead: "comes behind both", failed: 1, interrupts: true,
	twin: `run failed
main t1
t1 event
t1 R cols 120 @10
t1 R cols 120 @12
t1 signal 28
t1 W cols 120->64 @40
t1 return
t1 R cols 64 @10
t1 R cols 64 @12
`, twinPasses: `main t1
t1 R cols 120 @10
t1 R cols 120 @12
t1 signal 28
t1 W cols 120->64 @40
t1 return
t1 R cols 64 @10
t1 R cols 64 @12
`,
}, {
	name: "handler ends the run before the write",
	fails: `run failed
main t1
t1 R lines 0 @10
t1 signal 1
t1 R lines 0 @40
t1 W lines 0->0 @41
`,
	passes: `main t1
t1 R lines 0 @10
t1 W lines 0->1 @11
t1 signal 1
t1 R lines 1 @40
t1 W lines 1->0 @41
`,
	pattern: evidence.PatternRW, variables: "lines", lines: "40", instead: "comes before", failed: 1,
	twin: `run failed
main t1
t1 R lines 0 @10
t1 W lines 0->1 @11
t1 signal 1
t1 R lines 1 @40
t1 W lines 1->0 @41
t1 return
`,
}, {
	name: "ABA",
	fails: `run failed
main t1
t1 create t2 worker
t1 create t3 worker
t2 R head 16 @10
t2 event
t3 R head 16 @10
t3 RW head 16->32 @12
t3 event
t3 W head 32->48 @20
t3 event
t3 W head 48->16 @21
t3 event
t2 RW head 16->32 @12
t2 R head 32 @14
`,
	passes: `main t1
t1 create t2 worker
t1 create t3 worker
t2 R head 16 @10
t2 event
t2 RW head 16->32 @12
t2 R head 32 @14
t3 event
t3 R head 32 @10
t3 RW head 32->48 @12
t3 event
t3 W head 48->64 @20
t3 event
t3 W head 64->16 @21
`,
	pattern: evidence.PatternRWR, variables: "head", lines: "10 21 12", failed: 2,
	twin: `run failed
main t1
t1 create t2 worker
t1 create t3 worker
t2 lock L
t2 R head 16 @10
t2 RW head 16->32 @12
t2 unlock L
t3 lock L
t3 R head 32 @10
t3 RW head 32->48 @12
t3 unlock L
`,
}, {
	name: "stale length",
	fails: `run failed
main t1
t1 create t2 reader
t1 W bytes 0->4096 @5
t1 event
t2 event
t2 R bytes 4096 @20
t2 R length 3 @21
t1 event
t1 W length 3->5 @6
`,
	passes: `main t1
t1 create t2 reader
t1 W bytes 0->4096 @5
t1 event
t1 W length 3->5 @6
t2 event
t2 R bytes 4096 @20
t2 R length 5 @21
`,
	pattern: evidence.PatternPair, variables: "bytes length", lines: "5 20 21 6", instead: "not interleaved", failed: 2,
	twin: `run failed
main t1
t1 create t2 reader
t1 lock L
t1 W bytes 0->4096 @5
t1 event
t1 W length 3->5 @6
t1 unlock L
t2 lock L
t2 R bytes 4096 @20
t2 R length 5 @21
t2 unlock L
`,
}, {
	name: "published before it is whole",
	fails: `run failed
main t1
t1 create t2 reader
t1 W list 0->4096 @5
t1 event
t2 R list 4096 @20
t2 R probe 0 @21
t1 event
t1 W probe 0->7 @6
`,
	passes: `main t1
t1 create t2 reader
t1 W list 0->4096 @5
t1 W probe 0->7 @6
t2 R list 4096 @20
t2 R probe 7 @21
`,
	pattern: evidence.PatternRW, variables: "probe", lines: "21 6", instead: "comes before", failed: 2,
	twin: `run failed
main t1
t1 create t2 reader
t1 lock L
t1 W probe 0->7 @6
t1 W list 0->4096 @5
t1 unlock L
t2 lock L
t2 R list 4096 @20
t2 R probe 7 @21
t2 unlock L
`,
}, {
	name: "wrong lock",
	fails: `run failed
main t1
t1 create t2 a
t1 create t3 b
t2 lock L
t2 R n 0 @10
t2 event
t3 W n 0->5 @20
t2 event
t2 W n 0->1 @11
t2 unlock L
t1 R n 1 @30
`,
	passes: `main t1
t1 create t2 a
t1 create t3 b
t2 lock L
t2 R n 0 @10
t2 event
t2 W n 0->1 @11
t2 unlock L
t3 W n 1->5 @20
t1 R n 5 @30
`,
	pattern: evidence.PatternRWW, variables: "n", lines: "10 20 11", missing: "L", failed: 1,
	twin: `run failed
main t1
t1 create t2 a
t1 create t3 b
t2 lock L
t2 R n 0 @10
t2 W n 0->1 @11
t2 unlock L
t3 lock L
t3 W n 1->5 @20
t3 unlock L
t1 join t2
t1 join t3
t1 R n 5 @30
`,
}, {
	name: "lock order",
	fails: `run failed
main t1
t1 create t2 a
t1 create t3 b
t2 lock L @10
t3 lock M @20
t2 waits M @11
t3 waits L @21
`,
	passes: `main t1
t1 create t2 a
t1 create t3 b
t2 lock L @10
t2 lock M @11
t2 unlock M
t2 unlock L
t3 lock M @20
t3 lock L @21
`,
	pattern: evidence.PatternLockOrder, variables: "L M", instead: "never there at the same time",
	twin: `run failed
main t1
t1 create t2 a
t1 create t3 b
t2 lock L @10
t2 lock M @11
t2 unlock M
t2 unlock L
t3 lock L @20
t3 lock M @21
`,
}}

func TestPatterns(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := find(t, []uint32{c.failed}, c.fails, c.passes)
			if len(r.Candidates) == 0 {
				t.Fatal("no candidate")
			}
			first := &r.Candidates[0]
			if first.Pattern != c.pattern || strings.Join(first.Variables, " ") != c.variables || r.lines(first) != c.lines {
				t.Errorf("first: %s of %v at %s", first.Pattern, first.Variables, r.lines(first))
				for i := range r.Candidates {
					t.Logf("%s at %s, score %.2f, class %d", r.Candidates[i].Key, r.lines(&r.Candidates[i]), r.Candidates[i].Score, r.Candidates[i].class)
				}
			}
			if first.Missing != c.missing {
				t.Errorf("missing lock %q, want %q", first.Missing, c.missing)
			}
			if !strings.Contains(first.Instead, c.instead) || first.Instead == "" {
				t.Errorf("instead: %q, want %q", first.Instead, c.instead)
			}
			if first.Score != 1 || first.FailingRuns != 1 || first.PassingRuns != 0 || !first.Suspicious() {
				t.Errorf("score %v, %d failing, %d passing runs", first.Score, first.FailingRuns, first.PassingRuns)
			}
		})
	}
}

// TestTwins: the fixed programs' runs have nothing suspicious, be there a passing
// run to compare with or not.
func TestTwins(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			texts := []string{c.twin, strings.Replace(c.twin, "run failed", "", 1)}
			if c.twinPasses != "" {
				texts = append(texts, c.twinPasses)
			}
			for _, part := range [][]string{texts[:1], texts} {
				for _, s := range find(t, []uint32{c.failed}, part...).suspicious() {
					t.Errorf("%d logs: %s", len(part), s.Key)
				}
			}
		})
	}
}

// TestWithoutPassing: patterns that no serial order has are still found.
func TestWithoutPassing(t *testing.T) {
	for _, c := range cases {
		if n := len(strings.Fields(c.lines)); n < 3 {
			continue
		}
		r := find(t, []uint32{c.failed}, c.fails)
		list := r.suspicious()
		if len(list) == 0 || strings.Join(list[0].Variables, " ") != c.variables {
			t.Errorf("%s: %d candidates", c.name, len(list))
			continue
		}
		if !strings.Contains(r.Measure, "no passing run") || list[0].PassingOf != 0 {
			t.Errorf("%s: measure %q", c.name, r.Measure)
		}
	}
}

// TestRanking: with several runs, what predicts the failure comes first.
func TestRanking(t *testing.T) {
	noise := func(text string, other string) string {
		return text + "t1 create t4 noise\n" + other
	}
	racy := "t4 event\nt4 R m 0 @50\nt1 W m 0->1 @40\nt4 R m 1 @51\n"
	calm := "t4 R m 0 @50\nt4 R m 0 @51\nt1 W m 0->1 @40\n"
	r := find(t, []uint32{1, 1, 1}, noise(counterFails, racy), noise(counterFails, calm), noise(counterFails, racy),
		noise(counterPasses, racy), noise(counterPasses, calm), noise(counterPasses, calm))
	first := r.Candidates[0]
	if first.Pattern != evidence.PatternRWW || first.FailingRuns != 3 || first.PassingRuns != 0 || first.Score != 1 {
		t.Errorf("first: %+v", first)
	}
	i := slices.IndexFunc(r.Candidates, func(c Candidate) bool { return c.Variables[0] == "m" && c.Pattern == evidence.PatternRWR })
	if i < 0 {
		t.Fatal("the noise is not there")
	}
	if c := r.Candidates[i]; c.FailingRuns != 2 || c.PassingRuns != 1 || c.Score >= 0.7 || c.Score <= 0.6 {
		t.Errorf("noise: %d failing, %d passing runs, score %v", c.FailingRuns, c.PassingRuns, c.Score)
	}
	if !strings.Contains(r.Measure, "3 runs failing and 3 runs passing") {
		t.Errorf("measure %q", r.Measure)
	}
}

// TestLoops: a loop of reads is as one, and how often it goes round changes
// nothing.
func TestLoops(t *testing.T) {
	text := func(rounds int, fails bool) string {
		poll := strings.Repeat("t2 R flag 0 @20\n", rounds)
		if fails {
			return "run failed\nmain t1\nt1 create t2 worker\n" + poll + "t1 W flag 0->1 @5\nt2 event\nt2 R flag 1 @22\n"
		}
		return "main t1\nt1 create t2 worker\n" + poll + "t2 event\nt2 R flag 0 @22\nt1 W flag 0->1 @5\n"
	}
	keys := func(rounds int) string {
		r := find(t, []uint32{2}, text(rounds, true), text(2*rounds+1, false))
		var keys []string
		for _, c := range r.Candidates {
			keys = append(keys, c.Key)
		}
		return strings.Join(keys, "\n")
	}
	if one, many := keys(1), keys(1000); one != many || one == "" {
		t.Errorf("one round:\n%s\nmany:\n%s", one, many)
	}
}
