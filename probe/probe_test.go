package probe_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"diagnose/internal/recordtest"
	"diagnose/probe"
	"diagnose/replay/record"
)

func TestMain(m *testing.M) { recordtest.Main(m) }

const source = "../internal/testdata/probe/queue.c"

var builds = []struct{ compiler, level string }{{"gcc", "-O0"}, {"gcc", "-O2"}, {"clang", "-O0"}, {"clang", "-O2"}}

// recorded records a program of one file.
func recorded(t testing.TB, file, ends string, compile ...string) *record.Recording {
	t.Helper()
	path, err := exec.LookPath(compile[0])
	if err != nil {
		t.Skip(err)
	}
	exe := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command(path, append(compile[1:], "-g", "-pthread", "-o", exe, file)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rec, err := record.Open(recordtest.RecordProgram(t, exe, nil, "", ends).Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec
}

// eachBuild runs a test with the recordings of a program by several compilers.
func eachBuild(t *testing.T, run func(*testing.T, *record.Recording)) {
	for _, b := range builds {
		t.Run(b.compiler+b.level, func(t *testing.T) { run(t, recorded(t, source, "SIGABRT", b.compiler, b.level)) })
	}
}

// ask answers a question with a verified replay.
func ask(t *testing.T, rec *record.Recording, q probe.Question) *probe.Log {
	t.Helper()
	q.Verify = true
	log, err := probe.Ask(t.Context(), rec, &q)
	if err != nil {
		t.Fatal(err)
	}
	if !log.Replay.Comparison.Identical() {
		t.Errorf("the replay is not identical: %s", recordtest.Differences(log.Replay))
	}
	for _, p := range log.Places {
		if p.Unreachable {
			t.Errorf("%+v was not observed", p)
		}
	}
	return log
}

func text(row *probe.Row, name string) string {
	for i := range row.Values {
		if v := &row.Values[i]; v.Name == name {
			if v.Value.Unavailable != "" {
				return "<" + v.Value.Unavailable + ">"
			}
			return v.Value.Text
		}
	}
	return "<missing>"
}

func number(t *testing.T, row *probe.Row, name string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text(row, name), 64)
	if err != nil {
		t.Fatalf("%s is %s at %v", name, text(row, name), row.Moment)
	}
	return v
}

// marked returns FILE:LINE of the line with a comment.
func marked(t *testing.T, mark string) string {
	t.Helper()
	data, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(data), "\n") {
		if strings.Contains(line, "/* "+mark+" */") {
			return fmt.Sprintf("queue.c:%d", i+1)
		}
	}
	t.Fatalf("no line %s", mark)
	return ""
}

const (
	items   = 900 // of all workers
	workers = 3
)

// keys is the sum of all keys.
func keys() (sum float64) {
	for self := range workers {
		for i := range items / workers {
			sum += float64(self*100 + i%100)
		}
	}
	return sum
}

// TestLine: a row for each time that a line was executed, with the variables as they were then.
func TestLine(t *testing.T) {
	eachBuild(t, func(t *testing.T, rec *record.Recording) {
		at := marked(t, "PUSHED")
		log := ask(t, rec, probe.Question{Lines: []string{at}, Print: []string{"pushed", "jobs.len", "jobs.head->key", "item->key", "item->name", "item->kind", "q == &jobs"}})
		if len(log.Rows) != items {
			t.Fatalf("%d rows", len(log.Rows))
		}
		sum, after, threads := 0.0, 0.0, map[uint32]bool{}
		for i := range log.Rows {
			row := &log.Rows[i]
			threads[row.Moment.Thread] = true
			// In optimised code the compiler may say that the line begins when it is over.
			got := number(t, row, "pushed")
			if i == 0 {
				after = got
			}
			if got != float64(i)+after || after != 0 && (after != 1 || strings.HasSuffix(t.Name(), "-O0")) {
				t.Fatalf("row %d has %v", i, got)
			}
			key := text(row, "jobs.head->key")
			n, _ := strconv.Atoi(key)
			sum += float64(n)
			// The pointers may be gone at this line; the cell then says so.
			for name, want := range map[string]string{"item->key": key, "item->name": `"job ` + key + `"`, "q == &jobs": "1",
				"item->kind": map[bool]string{true: "LARGE (1)", false: "SMALL (0)"}[n > 200]} {
				if got := text(row, name); got != want && got != "<optimized out>" {
					t.Errorf("%s is %s at %v, want %s", name, got, row.Moment, want)
				}
			}
		}
		if sum != keys() || len(threads) != workers {
			t.Errorf("keys %v, want %v; threads %v", sum, keys(), threads)
		}
		few := ask(t, rec, probe.Question{Lines: []string{at}, Print: []string{"pushed"}, If: "jobs.head->key > 200 && pushed % 2 == 0", Most: 7})
		held := 0
		for i := range log.Rows {
			pushed := text(&log.Rows[i], "pushed")
			if n, _ := strconv.Atoi(text(&log.Rows[i], "jobs.head->key")); n > 200 && (i+int(after))%2 == 0 {
				if held < len(few.Rows) && text(&few.Rows[held], "pushed") != pushed {
					t.Errorf("row %d is of %s, want %s", held, text(&few.Rows[held], "pushed"), pushed)
				}
				held++
			}
		}
		if few.Arrivals != items || few.Held != uint64(held) || len(few.Rows) != 7 || few.Cut || held < 50 {
			t.Errorf("%d rows of %d that held, want %d", len(few.Rows), few.Held, held)
		}
	})
}

// TestCalls: parameters at calls and their results, inlined calls among them.
func TestCalls(t *testing.T) {
	eachBuild(t, func(t *testing.T, rec *record.Recording) {
		log := ask(t, rec, probe.Question{Calls: []string{"weigh", "is_large"}, Returns: []string{"weigh", "pop", "fold"}})
		counts := map[string]int{}
		last := map[uint32]float64{}
		sum, large := 0.0, 0.0
		for i := range log.Rows {
			row := &log.Rows[i]
			p := &log.Places[row.Place]
			counts[string(p.Kind)+" "+p.Asked]++
			switch {
			case p.Kind == probe.KindCall && p.Asked == "weigh":
				last[row.Moment.Thread] = number(t, row, "key")
				sum += last[row.Moment.Thread]
				if got := text(row, "factor"); got != "0.5" {
					t.Fatalf("factor is %s", got)
				}
			case p.Kind == probe.KindCall:
				large++
				if !p.Inlined {
					t.Errorf("%+v is inlined", p)
				}
			case p.Asked == "weigh":
				if got, want := number(t, row, probe.Result), last[row.Moment.Thread]/2; got != want {
					t.Fatalf("weigh returned %v, want %v", got, want)
				}
			case p.Asked == "pop":
				if got := text(row, probe.Result); !strings.HasPrefix(got, "0x") || got == "0x0" {
					t.Fatalf("pop returned %s", got)
				}
			}
		}
		if sum != keys() || counts["call weigh"] != items || counts["return weigh"] != items || counts["return pop"] != items/3 || large != items || counts["return fold"] == 0 {
			t.Errorf("%v, keys %v, want %v", counts, sum, keys())
		}
		if result := number(t, &log.Rows[len(log.Rows)-1], probe.Result); result != 55 {
			t.Errorf("fold(10) is %v", result)
		}
	})
}

// TestEvents: system calls and signals, with the variables of the function that they came from.
func TestEvents(t *testing.T) {
	eachBuild(t, func(t *testing.T, rec *record.Recording) {
		log := ask(t, rec, probe.Question{Syscalls: []string{"write"}, Signals: true, Print: []string{"signals", "pushed"}, Stack: true})
		if len(log.Rows) != 2 {
			t.Fatalf("%d rows", len(log.Rows))
		}
		signal, call := &log.Rows[0], &log.Rows[1]
		if signal.Event != "SIGUSR1" || text(signal, "signals") != "0" || text(signal, "pushed") != "900" || !strings.HasPrefix(signal.Stack[0], "handler ") {
			t.Errorf("%+v", signal)
		}
		if !strings.HasPrefix(call.Event, "write(1, ") || text(call, "signals") != "10" || call.Moment.PC != 0 || call.Position <= signal.Position {
			t.Errorf("%+v", call)
		}
	})
}

// TestMany: more than 100,000 rows with values leave the replay as recorded.
func TestMany(t *testing.T) {
	rec := recorded(t, source, "SIGABRT", "gcc", "-O2")
	log := ask(t, rec, probe.Question{Calls: []string{"mix"}, Print: []string{"n", "n == mixed"}})
	if len(log.Rows) != 120_000 || log.Replay.Moved != 1 || log.Replay.Trapped != 0 {
		t.Fatalf("%d rows, %+v", len(log.Rows), log.Replay)
	}
	for i := range log.Rows {
		row := &log.Rows[i]
		if text(row, "n") != fmt.Sprint(i) || text(row, "n == mixed") != "1" || row.Moment.Count != uint64(i+1) {
			t.Fatalf("row %d: %+v", i, row)
		}
	}
	t.Logf("%.0f rows a second", float64(len(log.Rows))/log.Elapsed.Seconds())
	cut, err := probe.Ask(t.Context(), rec, &probe.Question{Calls: []string{"mix"}, Most: 10})
	if err != nil || len(cut.Rows) != 10 || !cut.Cut {
		t.Errorf("%v, %+v", err, cut)
	}
}

// TestWrong: what does not exist is an error that names what there is.
func TestWrong(t *testing.T) {
	rec := recorded(t, source, "SIGABRT", "gcc", "-O0")
	at := marked(t, "PUSHED")
	for _, x := range []struct {
		q    probe.Question
		want string
	}{
		{probe.Question{Lines: []string{"queue.c:3"}}, "queue.c:34"},
		{probe.Question{Lines: []string{"queue.c:100000"}}, "queue.c:1"},
		{probe.Question{Lines: []string{"queu.c:34"}}, "there is queue.c"},
		{probe.Question{Lines: []string{"33"}}, "is no FILE:LINE"},
		{probe.Question{Lines: []string{"queue.c:-1"}}, "is no FILE:LINE"},
		{probe.Question{Calls: []string{"pusch"}}, "there is push"},
		{probe.Question{Returns: []string{"is_large"}}, "inlined the function everywhere"},
		{probe.Question{Syscalls: []string{"wriite"}}, "is no system call"},
		{probe.Question{Lines: []string{at}, Print: []string{"itm->key"}}, "there is item"},
		{probe.Question{Lines: []string{at}, Print: []string{"item->ky"}}, "there is key"},
		{probe.Question{Lines: []string{at}, Print: []string{"item.key"}}, "->"},
		{probe.Question{Lines: []string{at}, Print: []string{"item->"}}, "member's name is missing"},
		{probe.Question{Lines: []string{at}, If: "items"}, "no variable items"},
		{probe.Question{Lines: []string{at}, Print: []string{"$result"}}, "no variable $result"},
		{probe.Question{Calls: []string{"push"}, Print: []string{"h"}}, "no variable h"},
	} {
		_, err := probe.Ask(t.Context(), rec, &x.q)
		var wrong *probe.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.q, err, x.want)
		}
	}
	// What depends on the values is in the cells, and a condition without a value makes no row.
	log := ask(t, rec, probe.Question{Lines: []string{at}, Print: []string{"item->next->key", "1 / (item->key - item->key)"}, If: "jobs.len == 1"})
	row := &log.Rows[0]
	if text(row, "item->next->key") != "<memory at 0x8 is not mapped>" || text(row, "1 / (item->key - item->key)") != "<a division by zero>" {
		t.Errorf("%+v", row.Values)
	}
	log = ask(t, rec, probe.Question{Lines: []string{at}, If: "item->next->key >= 0"})
	if log.Undecided == 0 || log.Undecided+log.Held != items || log.Reason.Unavailable == "" {
		t.Errorf("%d undecided, %d held, %v", log.Undecided, log.Held, log.Reason)
	}
}
