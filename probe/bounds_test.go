package probe_test

import (
	"testing"

	"diagnose/probe"
	"diagnose/replay/record"
)

// TestBoundsAndThread: the rows before a moment and those from it on are all rows, and so are those of the threads.
func TestBoundsAndThread(t *testing.T) {
	eachBuild(t, func(t *testing.T, rec *record.Recording) {
		q := probe.Question{Calls: []string{"weigh", "push"}, Returns: []string{"weigh"}}
		whole := ask(t, rec, q)
		for _, n := range []int{1, len(whole.Rows) / 3, len(whole.Rows) - 1} {
			at := whole.Rows[n].Moment
			// A return's moment is that of the instruction after the call, at which no thread can be stopped before it was added.
			if whole.Places[whole.Rows[n].Place].Kind == probe.KindReturn {
				continue
			}
			before, after := q, q
			before.Until, after.From = &at, &at
			first, err := probe.Ask(t.Context(), rec, &before)
			if err != nil {
				t.Fatal(err)
			}
			second, err := probe.Ask(t.Context(), rec, &after)
			if err != nil {
				t.Fatal(err)
			}
			if len(first.Rows) != n || len(first.Rows)+len(second.Rows) != len(whole.Rows) {
				t.Fatalf("%v: %d rows before and %d after, of %d", at, len(first.Rows), len(second.Rows), len(whole.Rows))
			}
			if got := second.Rows[0].Moment; got != at {
				t.Errorf("the first row from %v on is at %v", at, got)
			}
		}
		rows := 0
		for thread := range uint32(workers) {
			one := q
			one.Thread = thread + 2
			log := ask(t, rec, one)
			for i := range log.Rows {
				if got := log.Rows[i].Moment.Thread; got != one.Thread {
					t.Fatalf("a row of thread %d among those of %d", got, one.Thread)
				}
			}
			rows += len(log.Rows)
		}
		if rows != len(whole.Rows) {
			t.Errorf("%d rows of the threads, %d of all", rows, len(whole.Rows))
		}
	})
}

// TestCallsAreNumbered: the rows of one call have its number, in recursions, too.
func TestCallsAreNumbered(t *testing.T) {
	eachBuild(t, func(t *testing.T, rec *record.Recording) {
		log := ask(t, rec, probe.Question{Calls: []string{"fold"}, Returns: []string{"fold"}})
		entered := map[uint64]int{}
		returned := 0
		for i := range log.Rows {
			row := &log.Rows[i]
			if log.Places[row.Place].Inlined {
				continue // it has no return
			}
			if log.Places[row.Place].Kind == probe.KindCall {
				if _, twice := entered[row.Call]; twice || row.Call == 0 {
					t.Fatalf("call %d begins twice", row.Call)
				}
				entered[row.Call] = int(number(t, row, "n"))
				continue
			}
			n, known := entered[row.Call]
			if !known {
				t.Fatalf("call %d returns and has not begun", row.Call)
			}
			a, b := 0, 1
			for range n {
				a, b = b, a+b
			}
			if got := int(number(t, row, probe.Result)); got != a {
				t.Errorf("fold(%d) is %d", n, got)
			}
			returned++
		}
		if returned == 0 || returned > len(entered) {
			t.Errorf("%d calls, %d returns", len(entered), returned)
		}
	})
}

// TestEvery: each function of the program has its calls.
func TestEvery(t *testing.T) {
	rec := recorded(t, source, "SIGABRT", "gcc", "-O0")
	q := probe.Question{Every: true, Thread: 3, Print: []string{"1"}}
	log := ask(t, rec, q)
	counts := map[string]int{}
	for i := range log.Rows {
		counts[log.Places[log.Rows[i].Place].Site.Function]++
	}
	if counts["worker"] != 1 || counts["weigh"] != items/workers || counts["push"] != items/workers || counts["mix"] != 0 {
		t.Errorf("%v", counts)
	}
}
