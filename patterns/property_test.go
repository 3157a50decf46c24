package patterns

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"diagnose/delta"
	"diagnose/evidence"
	"diagnose/internal/accesslog"
)

// randomLog is a log of a few threads without ordering edges.
func randomLog(r *rand.Rand, failed bool) *evidence.AccessLog {
	var b strings.Builder
	if failed {
		b.WriteString("run failed\n")
	}
	values := [3]int{}
	for range 5 + r.IntN(60) {
		thread, variable := 1+r.IntN(4), r.IntN(3)
		where := 1 + r.IntN(4) + 10*thread
		switch v := values[variable]; r.IntN(5) {
		case 0, 1:
			fmt.Fprintf(&b, "t%d R v%d %d @%d\n", thread, variable, v, where)
		case 2:
			values[variable]++
			fmt.Fprintf(&b, "t%d W v%d %d->%d @%d\n", thread, variable, v, v+1, where)
		case 3:
			values[variable]++
			fmt.Fprintf(&b, "t%d RW v%d %d->%d @%d\n", thread, variable, v, v+1, where)
		default:
			fmt.Fprintf(&b, "t%d event\n", thread)
		}
	}
	return accesslog.Log(b.String())
}

// keysOf returns the patterns of a result, those of two variables only if
// wanted, each with the numbers of failing and passing runs that have it.
func keysOf(r *Result, pairs bool) []string {
	var keys []string
	for _, c := range r.Candidates {
		if pairs || c.Pattern != evidence.PatternPair {
			keys = append(keys, fmt.Sprintf("%s %d/%d %v %q", c.Key, c.FailingRuns, c.PassingRuns, c.Reversed, c.Ordered))
		}
	}
	slices.Sort(keys)
	return keys
}

func result(t *testing.T, failing, passing *evidence.AccessLog) *Result {
	t.Helper()
	runs, err := delta.Align([]*evidence.AccessLog{failing}, []*evidence.AccessLog{passing})
	if err != nil {
		t.Fatal(err)
	}
	return Find(delta.Compare(runs), Options{Most: 1 << 20})
}

// independent accesses may be swapped: they are by different threads, to
// different variables, or both only read.
func independent(a, b *evidence.Access) bool {
	return a.Thread != b.Thread && (a.Variable != b.Variable || a.Kind == evidence.CodeRead && b.Kind == evidence.CodeRead)
}

// TestIndependent: the order of two independent accesses changes no pattern of
// one variable.
func TestIndependent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	swapped := 0
	for round := range 400 {
		failing, passing := randomLog(r, true), randomLog(r, false)
		before := keysOf(result(t, failing, passing), false)
		for range 200 {
			if n := len(failing.Accesses); n > 1 {
				i := r.IntN(n - 1)
				if a, b := &failing.Accesses[i], &failing.Accesses[i+1]; independent(a, b) {
					*a, *b = *b, *a
					swapped++
				}
			}
		}
		after := keysOf(result(t, failing, passing), false)
		if !slices.Equal(before, after) {
			t.Fatalf("round %d:\n%s\n\nafter:\n%s", round, strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
	}
	if swapped < 1000 {
		t.Errorf("only %d accesses were swapped", swapped)
	}
}

// TestThreadNumbers: the numbers of threads do not matter.
func TestThreadNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	found := 0
	for range 200 {
		failing, passing := randomLog(r, true), randomLog(r, false)
		before := keysOf(result(t, failing, passing), true)
		found += len(before)
		numbers := r.Perm(9)
		threads := map[uint32]evidence.ThreadRef{}
		for i := range failing.Accesses {
			failing.Accesses[i].Thread = uint32(1 + numbers[failing.Accesses[i].Thread])
		}
		for n, ref := range failing.Threads {
			threads[uint32(1+numbers[n])] = ref
		}
		failing.Threads = threads
		if after := keysOf(result(t, failing, passing), true); !slices.Equal(before, after) {
			t.Fatalf("before:\n%s\n\nafter:\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
	}
	if found < 1000 {
		t.Errorf("only %d patterns", found)
	}
}

// TestAgainstDefinition compares the patterns of three with those that the
// definition gives, access by access.
func TestAgainstDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	all := 0
	for range 300 {
		log := randomLog(r, true)
		runs, err := delta.Align([]*evidence.AccessLog{log}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := newScanner(runs.Failing[0], 0)
		s.scan()
		want := byDefinition(log)
		got := map[string]bool{}
		for k := range s.found.all() {
			if k.shape >= shapeRWR && k.shape <= shapeWRW {
				got[fmt.Sprint(kinds[k.shape], k.variable, k.places)] = true
			}
		}
		for k := range want {
			if !got[k] {
				t.Fatalf("%s is missing", k)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d found, the definition gives %d", len(got), len(want))
		}
		all += len(got)
	}
	if all < 1000 {
		t.Errorf("only %d patterns", all)
	}
}

// byDefinition examines each pair of successive accesses of a thread, and all accesses in
// between.
func byDefinition(log *evidence.AccessLog) map[string]bool {
	runs, _ := delta.Align([]*evidence.AccessLog{log}, nil)
	run := runs.Failing[0]
	found := map[string]bool{}
	for c := range log.Accesses {
		last := &log.Accesses[c]
		for p := c - 1; p >= 0; p-- {
			first := &log.Accesses[p]
			if first.Variable != last.Variable || first.Thread != last.Thread {
				continue
			}
			between(run, p, c, found)
			break
		}
	}
	return found
}

func between(run *delta.Run, p, c int, found map[string]bool) {
	log := run.Log
	first, last := &log.Accesses[p], &log.Accesses[c]
	note := func(kind evidence.PatternKind, b *evidence.Access) {
		found[fmt.Sprint(kind, run.Variable[last.Variable], [4]delta.Place{run.Place(first), run.Place(b), run.Place(last)})] = true
	}
	var write *evidence.Access
	readers := map[uint32]*evidence.Access{}
	for i := p + 1; i < c; i++ {
		b := &log.Accesses[i]
		if b.Variable != last.Variable {
			continue
		}
		if write == nil && b.Kind != evidence.CodeWrite {
			readers[b.Thread] = b
		}
		if b.Kind != evidence.CodeRead {
			write = b
		}
	}
	switch {
	case write != nil && last.Kind != evidence.CodeWrite && first.Kind == evidence.CodeRead:
		note(evidence.PatternRWR, write)
	case write != nil && last.Kind != evidence.CodeWrite:
		note(evidence.PatternWWR, write)
	case write != nil && first.Kind == evidence.CodeRead:
		note(evidence.PatternRWW, write)
	case first.Kind != evidence.CodeRead && last.Kind != evidence.CodeRead:
		for _, b := range readers {
			note(evidence.PatternWRW, b)
		}
	}
}
