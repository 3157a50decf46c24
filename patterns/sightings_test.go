package patterns

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"diagnose/delta"
	"diagnose/evidence"
)

func numbered(n int) key { return key{places: [4]delta.Place{delta.Place(n)}} }

// TestSightings: the patterns that were seen last are kept, old and new ones,
// and the dropped ones are counted.
func TestSightings(t *testing.T) {
	s := newSightings()
	const patterns = 4*mostKeys + mostKeys/2
	for n := range patterns {
		s.note(numbered(n)).last[0] = int32(n)
		if n%1000 == 0 {
			s.note(numbered(0)).last[1]++
		}
	}
	kept := 0
	for k, seen := range s.all() {
		if k.places[0] != 0 && seen.last[0] != int32(k.places[0]) {
			t.Fatalf("%d is said to be at %d", k.places[0], seen.last[0])
		}
		if s.sightingOf(k) != seen {
			t.Fatalf("%d is not found", k.places[0])
		}
		kept++
	}
	if kept != s.len() || kept < mostKeys || kept > 2*mostKeys || kept+s.forgotten != patterns {
		t.Errorf("%d kept, len %d, %d forgotten of %d", kept, s.len(), s.forgotten, patterns)
	}
	for n := patterns - mostKeys; n < patterns; n++ {
		if s.sightingOf(numbered(n)) == nil {
			t.Fatalf("%d is forgotten", n)
		}
	}
	if often := s.sightingOf(numbered(0)); often == nil || often.last[1] != (patterns+999)/1000 {
		t.Errorf("orders seen again and again: %+v", often)
	}
	if s.sightingOf(numbered(1)) != nil {
		t.Error("an order seen once, at the start, is still there")
	}
}

// crowd is a log of threads that take turns at one word, at hundreds of places: any
// three of them are a pattern. Its last accesses are at three places of their own.
func crowd(seed uint64, last ...evidence.AccessCode) *evidence.AccessLog {
	const threads, places, accesses = 8, 300, 120_000
	r := rand.New(rand.NewPCG(seed, 1))
	log := &evidence.AccessLog{Recording: fmt.Sprint("crowd ", seed), Variables: []evidence.Watched{{Name: "word", Size: 8}},
		LockSets: [][]evidence.Lock{nil}, Threads: map[uint32]evidence.ThreadRef{}}
	for i := range places + 3 {
		name := fmt.Sprintf("f%d", i)
		log.Contexts = append(log.Contexts, evidence.Context{Key: name, Site: evidence.Site{Function: name, PC: evidence.Addr(i)}})
	}
	for i := range accesses {
		log.Accesses = append(log.Accesses, evidence.Access{
			Ordinal: uint64(i), New: r.Uint64(), Thread: 1 + r.Uint32N(threads), Context: r.Int32N(places), Size: 8,
			Kind: evidence.CodeRead + evidence.AccessCode(r.IntN(2)),
		})
	}
	for i, kind := range last {
		log.Accesses = append(log.Accesses, evidence.Access{
			Ordinal: uint64(accesses + i), Old: uint64(i), New: uint64(i + 1), Thread: uint32(1 + i%2), Context: int32(places + i), Size: 8, Kind: kind,
		})
	}
	return log
}

// TestTooMany: of runs with too many patterns those next to the failure are reported,
// the same each time. A pattern that a passing run has too is not reported, however
// many others that run has. The report says that there are more.
func TestTooMany(t *testing.T) {
	rww := []evidence.AccessCode{evidence.CodeRead, evidence.CodeWrite, evidence.CodeWrite}
	search := func(failing *evidence.AccessLog, passing ...*evidence.AccessLog) *Result {
		failing.Failed = true
		runs, err := delta.Align([]*evidence.AccessLog{failing}, passing)
		if err != nil {
			t.Fatal(err)
		}
		return Find(delta.Compare(runs), Options{Most: 1000})
	}
	last := func(r *Result) bool {
		for i := range r.Candidates {
			if strings.HasPrefix(r.Candidates[i].Key, "RWW word | thread: f300 | thread: f301 | thread: f302") {
				return true
			}
		}
		return false
	}
	one := search(crowd(1, rww...), crowd(2))
	if len(one.Limits) == 0 || one.Limits[0].Code != evidence.LimitManyPatterns || one.Limits[0].Subject != "crowd 1" || one.Seen < mostKeys {
		t.Fatalf("%d patterns, limits: %+v", one.Seen, one.Limits)
	}
	if !last(one) {
		t.Error("the last pattern is not told")
	}
	for range 2 {
		again := search(crowd(1, rww...), crowd(2))
		if !reflect.DeepEqual(again.Candidates, one.Candidates) || !reflect.DeepEqual(again.Limits, one.Limits) ||
			again.Seen != one.Seen || again.Common != one.Common || again.Ordered != one.Ordered {
			t.Fatal("it is another result each time")
		}
	}
	if last(search(crowd(1, rww...), crowd(2, rww...))) {
		t.Error("what the passing run has at its end is told")
	}
	// Everything of the failing run is in this one, and far more before and after it.
	passing := crowd(2)
	passing.Accesses = append(append(passing.Accesses, crowd(1, rww...).Accesses...), crowd(3).Accesses...)
	for _, c := range search(crowd(1, rww...), passing).Candidates {
		if len(c.Accesses) > 1 {
			t.Fatalf("%s is in the passing run, and told", c.Key)
		}
	}
}
