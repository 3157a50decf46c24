package probe_test

import (
	"fmt"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/probe"
	"diagnose/replay/record"
)

// bothWays asks a question with and without code in the process, and compares the answers. It returns how many arrivals the code has
// handled.
func bothWays(t *testing.T, rec *record.Recording, q probe.Question) uint64 {
	t.Helper()
	return compared(t, rec, q).Replay.Handled
}

// compared is bothWays, and returns the answer by code in the process.
func compared(t *testing.T, rec *record.Recording, q probe.Question) *probe.Log {
	t.Helper()
	fast := ask(t, rec, q)
	q.Stops = true
	slow := ask(t, rec, q)
	if slow.Replay.Handled != 0 || slow.Replay.Asked != 0 {
		t.Fatalf("%d arrivals were handled without stops, %d asked", slow.Replay.Handled, slow.Replay.Asked)
	}
	if fast.Arrivals != slow.Arrivals || fast.Held != slow.Held || fast.Undecided != slow.Undecided || !reflect.DeepEqual(fast.Reason, slow.Reason) {
		t.Errorf("%+v: %d arrivals, %d held, %d undecided (%v); by stops %d, %d, %d (%v)", q, fast.Arrivals, fast.Held, fast.Undecided, fast.Reason,
			slow.Arrivals, slow.Held, slow.Undecided, slow.Reason)
	}
	for i := range fast.Places {
		if !reflect.DeepEqual(fast.Places[i], slow.Places[i]) {
			t.Errorf("%+v, by stops %+v", fast.Places[i], slow.Places[i])
		}
	}
	if len(fast.Rows) != len(slow.Rows) {
		t.Fatalf("%+v: %d rows, by stops %d", q, len(fast.Rows), len(slow.Rows))
	}
	for i := range fast.Rows {
		if !reflect.DeepEqual(fast.Rows[i], slow.Rows[i]) {
			t.Fatalf("%+v: row %d\n%+v\nby stops\n%+v", q, i, fast.Rows[i], slow.Rows[i])
		}
	}
	return fast
}

// TestAsked: threads that wait in their code for the answer have the same rows as stops.
func TestAsked(t *testing.T) {
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil || may.Count() < 2 {
		t.Skip("threads only wait for answers where there are two processors: ", err)
	}
	for _, b := range builds {
		t.Run(b.compiler+b.level, func(t *testing.T) {
			rec := recorded(t, source, "SIGABRT", b.compiler, b.level)
			at := marked(t, "PUSHED")
			for _, q := range []probe.Question{
				{Calls: []string{"weigh", "push", "fold"}, Print: []string{"jobs", "*jobs.head"}, If: "jobs.head"},
				{Calls: []string{"weigh"}, Print: []string{"key", "factor", "factor * key"}, Stack: true},
				{Lines: []string{at}, Print: []string{"*q", "*item", "item->key * 1.5"}, Stack: true, Thread: 3},
				{Calls: []string{"weigh", "push"}, Returns: []string{"weigh", "push", "fold"}},
				{Calls: []string{"push", "weigh"}, Print: []string{"jobs"}, Syscalls: []string{"write"}, Signals: true, Verify: true},
			} {
				if log := compared(t, rec, q); len(q.Returns) == 0 && log.Replay.Asked == 0 || len(log.Rows) == 0 {
					t.Errorf("%+v: %d rows, no thread has asked at %d arrivals", q, len(log.Rows), log.Arrivals)
				}
			}
		})
	}
}

// TestBothWays: what code in the process handles has the same rows as stops have.
func TestBothWays(t *testing.T) {
	for _, b := range append(builds, struct{ compiler, level string }{"gcc", "-O3"}, struct{ compiler, level string }{"clang", "-O3"}) {
		t.Run(b.compiler+b.level, func(t *testing.T) {
			rec := recorded(t, source, "SIGABRT", b.compiler, b.level)
			at := marked(t, "PUSHED")
			for _, x := range []struct {
				q    probe.Question
				fast uint64
			}{
				{probe.Question{Calls: []string{"mix"}, Print: []string{"n", "seed", "n == mixed", "mixed"}, If: "n % 1000 == 7 || (seed & 3) == 1 && n > 100000"}, 120_000},
				{probe.Question{Calls: []string{"weigh", "push", "fold"}}, items},
				{probe.Question{Calls: []string{"weigh"}, Print: []string{"key", "factor", "-key", "(char)key", "key / 7", "key % 7 << 3", "sizeof key"}}, items},
				{probe.Question{Lines: []string{at}, Print: []string{"pushed", "jobs.len", "jobs.head->key", "jobs.head->name", "jobs.head->kind", "&jobs", "jobs.head + 1", "jobs.head->next"}}, items},
				{probe.Question{Lines: []string{at}, Print: []string{"jobs.len"}, If: "jobs.head->next->key > 100"}, items - 10},
				{probe.Question{Lines: []string{at}, Print: []string{"jobs.head->name == \"job 101\"", "\"job 7\" != jobs.head->name", "(char *)jobs.head->name == \"job 12\""},
					If: "jobs.head->name == \"job 101\" || (const char *)jobs.head->name != \"job 200\" && jobs.head->key > 190"}, items},
				{probe.Question{Lines: []string{at}, Print: []string{"pushed", "item", "item->name", "*item", "q->head->name[2]"}}, 0},
				{probe.Question{Lines: []string{at}, Calls: []string{"weigh"}, Print: []string{"pushed", "1000 / (pushed % 3)"}, Thread: 3}, 0},
			} {
				handled := bothWays(t, rec, x.q)
				if handled < x.fast {
					t.Errorf("%+v: %d arrivals were handled in the process, want %d", x.q, handled, x.fast)
				}
			}
		})
	}
}

// TestBothWaysEnd: a bound of rows ends both ways at the same arrival.
func TestBothWaysEnd(t *testing.T) {
	rec := recorded(t, source, "SIGABRT", "gcc", "-O2")
	for i, most := range []int{1, 5, 1000, 1, 5, 1000} {
		var logs []*probe.Log
		evaluated := i >= 3 // by the tool
		for _, stops := range []bool{false, true} {
			q := &probe.Question{Calls: []string{"mix"}, Print: []string{"n"}, If: "n % 3 == 1", Most: most, Stops: stops}
			if evaluated {
				q.Print = []string{"n * 0.5"}
			}
			log, err := probe.Ask(t.Context(), rec, q)
			if err != nil || !log.Cut || len(log.Rows) != most {
				t.Fatalf("%v, %+v", err, log)
			}
			logs = append(logs, log)
		}
		if logs[0].Replay.Handled == 0 && !evaluated || logs[0].Arrivals != logs[1].Arrivals || fmt.Sprint(logs[0].Rows) != fmt.Sprint(logs[1].Rows) {
			t.Errorf("%d arrivals, by stops %d\n%v\n%v", logs[0].Arrivals, logs[1].Arrivals, logs[0].Rows, logs[1].Rows)
		}
	}
}

// TestBlockedFault: an expression that leads nowhere leaves the program's handler of the signal, which it blocks then.
func TestBlockedFault(t *testing.T) {
	rec := recorded(t, "../internal/testdata/probe/blocked.c", "SIGABRT", "gcc", "-O0")
	bothWays(t, rec, probe.Question{Calls: []string{"look"}, Print: []string{"item->key"}})
}

// TestBothWaysBounds: the rows of a part of the recording, with places of events among those that code in the process handles.
func TestBothWaysBounds(t *testing.T) {
	rec := recorded(t, source, "SIGABRT", "gcc", "-O2")
	q := probe.Question{Calls: []string{"weigh", "push"}, Print: []string{"pushed"}, Syscalls: []string{"write"}, Signals: true}
	whole := ask(t, rec, q)
	if handled := bothWays(t, rec, q); handled < 2*items {
		t.Errorf("%d arrivals were handled in the process", handled)
	}
	for _, n := range []int{1, len(whole.Rows) / 3, len(whole.Rows) / 2} {
		at := whole.Rows[n].Moment
		var rows []probe.Row
		for _, stops := range []bool{false, true} {
			before, after := q, q
			before.Until, after.From = &at, &at
			var got []probe.Row
			for _, part := range []probe.Question{before, after} {
				part.Stops = stops
				log, err := probe.Ask(t.Context(), rec, &part)
				if err != nil {
					t.Fatal(err)
				}
				if !stops && log.Replay.Handled == 0 {
					t.Errorf("%v: all arrivals were stops", at)
				}
				if uint64(len(log.Rows)) != log.Held || log.Held != log.Arrivals {
					t.Errorf("%d rows, %d arrivals", len(log.Rows), log.Arrivals)
				}
				got = append(got, log.Rows...)
			}
			if rows != nil && !reflect.DeepEqual(rows, got) {
				t.Errorf("%v: %d rows, by stops %d, or with other values", at, len(rows), len(got))
			}
			rows = got
		}
		if len(rows) != len(whole.Rows) {
			t.Errorf("%v: %d rows of the parts, %d of all", at, len(rows), len(whole.Rows))
		}
	}
}
