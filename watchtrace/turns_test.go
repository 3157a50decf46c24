package watchtrace_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/watchtrace"
)

// preempted is a recording of testdata/trace/turns.c with a schedule in which its two threads
// continue alternately, all at one position. order has the thread of each round.
func preempted(t *testing.T, timing record.Timing) (rec *record.Recording, core *image.Process, order string) {
	t.Helper()
	rec, core = recorded(t, "turns")
	begin := map[uint32]uint64{}
	var threads []uint32
	position, all := uint64(0), uint64(0)
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		position++
		if e.Kind == eventlog.KindSem && e.Thread > 1 && begin[e.Thread] == 0 {
			begin[e.Thread], all = e.Ordinal, position
			threads = append(threads, e.Thread)
		}
	}
	if len(threads) != 2 {
		t.Fatalf("the threads with a semaphore are %v", threads)
	}
	at := func(thread uint32, count uint64) eventlog.Preemption {
		return eventlog.Preemption{Thread: thread, Ordinal: begin[thread], Class: eventlog.PointCode, Count: count, Until: all}
	}
	a, b := threads[0], threads[1]
	// Each is held at its second round's point, b once more at its third's, a at its fourth's.
	found := &record.Found{Version: record.FoundVersion, Timing: timing, By: "test", Level: "fine",
		Preemptions: []eventlog.Preemption{at(a, 2), at(b, 2), at(a, 2), at(b, 1)}}
	if err := rec.SetFound(found); err != nil {
		t.Fatal(err)
	}
	return rec, core, strings.NewReplacer("a", fmt.Sprint(a), "b", fmt.Sprint(b)).Replace("abaababb")
}

// rounds are the threads of the accesses to a variable, in the log's order.
func rounds(log *evidence.AccessLog, variable string) string {
	var b strings.Builder
	for i := range log.Accesses {
		if a := &log.Accesses[i]; log.Variables[a.Variable].Name == variable && a.Thread > 1 {
			fmt.Fprint(&b, a.Thread)
		}
	}
	return b.String()
}

// padded returns targets of which shared and last are in different passes of so many words.
func padded(t *testing.T, core *image.Process, words int) []watchtrace.Target {
	t.Helper()
	var list []watchtrace.Target
	for _, x := range []struct{ variable, rest string }{{"shared", "first"}, {"last", "second"}} {
		list = append(list, resolve(t, core, x.variable)...)
		rest := resolve(t, core, x.rest)[0]
		for i := range words - 1 {
			list = append(list, watchtrace.Target{Name: fmt.Sprintf("%s[%d]", x.rest, i), Addr: rest.Addr + evidence.Addr(8*i), Size: 8})
		}
	}
	return list
}

// TestTurns: the accesses of a schedule that preempts within one position are in the order in which
// they happened, also those of several passes.
func TestTurns(t *testing.T) {
	for _, timing := range []record.Timing{record.TimingEager, record.TimingLazy} {
		rec, core, order := preempted(t, timing)
		for backend, words := range map[replay.Backend]int{replay.BackendProbe: replay.MostProbed, replay.BackendPages: 4, replay.BackendPtrace: 4, replay.BackendBPF: 4} {
			t.Run(string(timing)+" "+string(backend), func(t *testing.T) {
				_, log := traceLimited(t, rec, padded(t, core, words), watchtrace.Options{Backend: backend, Words: 2 * words})
				if log.Passes != 2 || log.Contradiction != nil {
					t.Fatalf("%d passes, %+v", log.Passes, log.Contradiction)
				}
				if got, other := rounds(log, "shared"), rounds(log, "last"); got != order || other != order {
					t.Errorf("accesses of threads %s and %s, want %s", got, other, order)
				}
				checkAlternation(t, log)
			})
		}
	}
}

// checkAlternation checks that each thread stores to last right after it has added to shared, in
// the same turn: the two are of different passes.
func checkAlternation(t *testing.T, log *evidence.AccessLog) {
	t.Helper()
	var list []*evidence.Access
	for i := range log.Accesses {
		if a := &log.Accesses[i]; a.Thread > 1 {
			list = append(list, a)
		}
	}
	counts := map[uint64]int{} // by turn: additions less stores
	for _, a := range list {
		if a.Turn == 0 {
			t.Fatalf("no turn: %+v", a)
		}
		if log.Variables[a.Variable].Name == "shared" {
			counts[a.Turn]++
		} else {
			counts[a.Turn]--
		}
	}
	for turn, n := range counts {
		if n != 0 {
			t.Errorf("in turn %d, %d more additions than stores", turn, n)
		}
	}
	if len(counts) != 6 || !slices.IsSortedFunc(list, func(a, b *evidence.Access) int { return int(a.Turn) - int(b.Turn) }) {
		t.Errorf("turns %v", counts)
	}
}

// TestTurnsAgain: every replay of a schedule has the same turns, with and without watches.
func TestTurnsAgain(t *testing.T) {
	for _, name := range []string{"turns", "names"} {
		rec, core := recorded(t, name)
		if name == "turns" {
			rec, core, _ = preempted(t, record.TimingEager)
		}
		turns := map[uint64]int{}
		for range 10 {
			r, err := replay.Run(t.Context(), rec, replay.PlainRequest{})
			if err != nil {
				t.Fatal(err)
			}
			turns[r.Turns]++
		}
		watches, _ := staticWords(core)
		r, err := replay.Run(t.Context(), rec, replay.WatchRequest{Watching: replay.Watching{Watches: watches[:4]}})
		if err != nil {
			t.Fatal(err)
		}
		if turns[r.Turns]++; len(turns) != 1 || r.Turns < 3 {
			t.Errorf("%s: replays had turns %v", name, turns)
		}
	}
}
