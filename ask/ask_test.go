package ask_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/ask"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
	"diagnose/replay/record"
)

func TestMain(m *testing.M) { recordtest.Main(m) }

const ledger = "../internal/testdata/ask/ledger.c"

var builds = []struct{ compiler, level string }{{"gcc", "-O0"}, {"gcc", "-O2"}, {"clang", "-O0"}, {"clang", "-O2"}}

// recorded records a program of one file.
func recorded(t testing.TB, file, ends string, compile ...string) *record.Recording {
	t.Helper()
	path, err := exec.LookPath(compile[0])
	if err != nil {
		t.Skip(err)
	}
	exe := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command(path, append(compile[1:], "-g", "-o", exe, file)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rec, err := record.Open(recordtest.RecordProgram(t, exe, nil, "", ends).Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec
}

// eachBuild runs a test with the recordings of the ledger by several compilers.
func eachBuild(t *testing.T, run func(*testing.T, *record.Recording)) {
	crashtest.TracesAccesses(t)
	for _, b := range builds {
		t.Run(b.compiler+b.level, func(t *testing.T) {
			run(t, recorded(t, ledger, "SIGABRT", b.compiler, b.level, "-pthread"))
		})
	}
}

// local is the answer about a local variable. An optimising compiler may keep it in pieces: then the question has none.
func local(t *testing.T, rec *record.Recording, q ask.Question) (a *ask.Answer, ok bool) {
	t.Helper()
	a, err := ask.Ask(t.Context(), rec, &q)
	var wrong *ask.Error
	if strings.HasSuffix(t.Name(), "-O2") && errors.As(err, &wrong) && strings.Contains(wrong.Problem, "in registers, or in several pieces") {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return a, true
}

func answer(t *testing.T, rec *record.Recording, q ask.Question) *ask.Answer {
	t.Helper()
	a, err := ask.Ask(t.Context(), rec, &q)
	if err != nil {
		t.Fatalf("%s %s: %v", q.Form, q.Asked, err)
	}
	return a
}

// line returns the number of the line with a comment.
func line(t *testing.T, file, mark string) int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range strings.Split(string(data), "\n") {
		if strings.Contains(text, "/* "+mark+" */") || strings.Contains(text, "// "+mark) {
			return i + 1
		}
	}
	t.Fatalf("no line %s", mark)
	return 0
}

// The ledger: each of the clerks books so often.
const bookings, clerks = 6, 2

// TestWrites: every write of a variable has its row, and no other one.
func TestWrites(t *testing.T) {
	eachBuild(t, func(t *testing.T, rec *record.Recording) {
		count := line(t, ledger, "COUNT")
		a := answer(t, rec, ask.Question{Form: ask.FormWrites, Asked: "booked"})
		if len(a.Writes) != bookings*clerks || a.Memory.Home != ask.HomeStatic {
			t.Fatalf("%d writes, %+v", len(a.Writes), a.Memory)
		}
		for i, w := range a.Writes {
			if w.Old != fmt.Sprint(i) || w.New != fmt.Sprint(i+1) || w.Site.Line != count || w.By != ask.ByProgram || len(w.Locks) != 1 || w.Locks[0].Name != "lock" {
				t.Errorf("%+v", w)
			}
		}
		last := answer(t, rec, ask.Question{Form: ask.FormLastWrite, Asked: "booked"})
		if len(last.Writes) != 1 || last.Writes[0].Moment != a.Writes[len(a.Writes)-1].Moment || last.Writes[0].Stack == nil || last.Writes[0].Stack.Frames[0].Site.Function != "clerk" {
			t.Errorf("last: %+v", last.Writes)
		}
		for n := range 3 { // the moments of rows are bounds
			at := a.Writes[1+4*n].Moment
			before := answer(t, rec, ask.Question{Form: ask.FormWrites, Asked: "booked", Until: &at})
			after := answer(t, rec, ask.Question{Form: ask.FormWrites, Asked: "booked", From: &at})
			if len(before.Writes)+len(after.Writes) != len(a.Writes) || at.PC != 0 && len(before.Writes) != 1+4*n {
				t.Errorf("%v: %d before, %d after", at, len(before.Writes), len(after.Writes))
			}
		}
		read := answer(t, rec, ask.Question{Form: ask.FormWrites, Asked: "name"})
		if len(read.Writes) != 1 || read.Writes[0].By != ask.ByCall || read.Writes[0].Call != "read" || read.Writes[0].Site.Line != line(t, ledger, "READ") {
			t.Errorf("a system call: %+v", read.Writes)
		}
		none := answer(t, rec, ask.Question{Form: ask.FormWrites, Asked: "untouched"})
		if len(none.Writes) != 0 || !none.Coverage.Unchanged() {
			t.Errorf("a variable that is never written: %+v, %+v", none.Writes, none.Coverage)
		}
	})
}

// TestOtherOwners: writes of an earlier owner of the memory are no writes of the expression.
func TestOtherOwners(t *testing.T) {
	eachBuild(t, func(t *testing.T, rec *record.Recording) {
		zero, book := line(t, ledger, "ZERO"), line(t, ledger, "BOOK")
		a := answer(t, rec, ask.Question{Form: ask.FormWrites, Asked: "head->balance"})
		m := a.Memory
		if m.Home != ask.HomeHeap || m.Object == nil || m.Object.Size != 24 || m.Since == nil || m.Earlier == 0 || m.Proof != evidence.Replayed {
			t.Fatalf("%+v", m)
		}
		own := 0
		for _, w := range a.Writes {
			if w.By == ask.ByHeap {
				continue // it fills the object when it allocates it
			}
			// Optimised code may say of the first one that it is of a line nearby.
			zeroed := w.New == "0" && (w.Site.Line == zero || strings.HasSuffix(t.Name(), "-O2"))
			if own++; !zeroed && w.Site.Line != book || w.Freed {
				t.Errorf("%+v", w)
			}
		}
		if own != 1+bookings*clerks {
			t.Errorf("%d writes", own)
		}
		for n := len(a.Writes) - 1; n > 0; n -= 5 { // although they are made through a register, their moments are exact
			m := a.Writes[n].Moment
			if a.Writes[n].By != ask.ByProgram {
				continue
			}
			before := answer(t, rec, ask.Question{Form: ask.FormWrites, Asked: "head->balance", Until: &m})
			if m.PC == 0 || len(before.Writes) != n {
				t.Errorf("%d writes before %v, the moment of write %d", len(before.Writes), m, n)
			}
		}
		step := line(t, ledger, "STEP")
		a, ok := local(t, rec, ask.Question{Form: ask.FormWrites, Asked: "steps"})
		if !ok {
			return
		}
		if m := a.Memory; m.Home != ask.HomeStack || m.Frame == nil || m.Frame.Function != "settle" || m.Since == nil || m.Earlier == 0 {
			t.Fatalf("%+v", m)
		}
		steps := map[string]int{}
		for _, w := range a.Writes {
			if w.Site.Line != step {
				t.Errorf("%+v", w)
			}
			steps[w.Part]++
		}
		if len(steps) != 8 || len(a.Writes) != 8 {
			t.Errorf("%d writes of %v", len(a.Writes), steps)
		}
	})
}

// TestValues: the values are those that the program computed, also through pointers.
func TestValues(t *testing.T) {
	eachBuild(t, func(t *testing.T, rec *record.Recording) {
		for _, x := range []struct {
			asked string
			from  int
		}{{"booked", 0}, {"booked + head->owner", 3}, {"head->owner == 3 ? booked : -1", 0}} {
			a := answer(t, rec, ask.Question{Form: ask.FormValues, Asked: x.asked})
			list := a.Values[max(len(a.Values)-bookings*clerks-1, 0):]
			if len(list) != bookings*clerks+1 {
				t.Fatalf("%s: %+v", x.asked, list)
			}
			for i, v := range list {
				if v.Value.Text != fmt.Sprint(i+x.from) {
					t.Errorf("%s: value %d is %+v", x.asked, i, v)
				}
			}
		}
		a := answer(t, rec, ask.Question{Form: ask.FormValues, Asked: "head->balance"})
		if v := a.Values[0]; v.Thread != 0 || v.Value.Unavailable == "" {
			t.Errorf("before the pointer is set: %+v", v)
		}
		want := bookings * clerks * (clerks + 1) / 2
		if v := a.Values[len(a.Values)-1]; v.Value.Text != fmt.Sprint(want) {
			t.Errorf("in the end: %+v", v)
		}
		steps, ok := local(t, rec, ask.Question{Form: ask.FormValues, Asked: "steps[7]"})
		if !ok {
			return
		}
		if n := len(steps.Values); n == 0 || steps.Values[n-1].Value.Text != "21" {
			t.Errorf("a local variable: %+v", steps.Values)
		}
		for _, v := range steps.Values {
			if v.Value.Text == "47" || v.Value.Text == "57" {
				t.Errorf("a value of another call: %+v", v)
			}
		}
	})
}

// TestCallsAndLines: every call with its arguments and its result, every execution of a line.
func TestCallsAndLines(t *testing.T) {
	eachBuild(t, func(t *testing.T, rec *record.Recording) {
		a := answer(t, rec, ask.Question{Form: ask.FormCalls, Asked: "book"})
		if len(a.Calls) != bookings*clerks {
			t.Fatalf("%d calls", len(a.Calls))
		}
		balance := 0
		for _, c := range a.Calls {
			sum := int(c.Thread) - 1
			balance += sum
			if c.Arguments[1].Name != "sum" || c.Arguments[1].Value.Text != fmt.Sprint(sum) || c.Returned == nil || c.Result == nil || c.Result.Text != fmt.Sprint(balance) {
				t.Errorf("%+v: %+v", c, c.Result)
			}
		}
		settle := answer(t, rec, ask.Question{Form: ask.FormCalls, Asked: "settle"})
		if n := len(settle.Calls); n != 2 || settle.Calls[0].Returned == nil || settle.Calls[1].Returned != nil {
			t.Errorf("%+v", settle.Calls)
		}
		few := answer(t, rec, ask.Question{Form: ask.FormCalls, Asked: "book", Most: 3})
		if len(few.Calls) != 3 || !few.More {
			t.Errorf("%d calls of 3, more %v", len(few.Calls), few.More)
		}
		ran := answer(t, rec, ask.Question{Form: ask.FormExecuted, Asked: fmt.Sprintf("ledger.c:%d", line(t, ledger, "BOOK")), From: &a.Calls[4].Moment})
		if len(ran.Executed) < bookings*clerks-4 {
			t.Errorf("%d times from the fifth call on", len(ran.Executed))
		}
	})
}

// TestHolders: the times for which threads hold locks do not overlap, and are as many as the program says.
func TestHolders(t *testing.T) {
	eachBuild(t, func(t *testing.T, rec *record.Recording) {
		for _, lock := range []string{"lock", "spin", "rates"} {
			a := answer(t, rec, ask.Question{Form: ask.FormHolders, Asked: lock})
			if len(a.Holds) != bookings*clerks {
				t.Fatalf("%s: %d holds", lock, len(a.Holds))
			}
			for i, h := range a.Holds {
				if h.Shared != (lock == "rates") || h.Released == nil || h.Releaser != 0 || h.Released.Position < h.Position || h.Site.Function != "clerk" || h.By.Function != "clerk" {
					t.Errorf("%s: %+v", lock, h)
				}
				if i > 0 && !h.Shared && h.Position < a.Holds[i-1].Released.Position {
					t.Errorf("%s: %+v overlaps %+v", lock, h, a.Holds[i-1])
				}
			}
		}
	})
}

// TestDid: what a clerk did is in the order in which it did it.
func TestDid(t *testing.T) {
	eachBuild(t, func(t *testing.T, rec *record.Recording) {
		a := answer(t, rec, ask.Question{Form: ask.FormDid, Asked: "3"})
		counts := map[ask.DeedKind]int{}
		for i, d := range a.Did {
			counts[d.Kind]++
			if i > 0 && d.Position < a.Did[i-1].Position {
				t.Errorf("%+v is after %+v", d, a.Did[i-1])
			}
		}
		if counts[ask.DeedFunction] != 1+bookings || counts[ask.DeedLock] < bookings || counts[ask.DeedSyscall] < bookings || counts[ask.DeedThread] != 2 {
			t.Errorf("%v", counts)
		}
		from, until := a.Did[3].Moment, a.Did[len(a.Did)-3].Moment
		part := answer(t, rec, ask.Question{Form: ask.FormDid, Asked: "3", From: &from, Until: &until})
		if n := len(part.Did); n == 0 || n > len(a.Did)-4 {
			t.Errorf("%d of %d", n, len(a.Did))
		}
	})
}

// TestWrongQuestions: an error names the mistake, and the nearest thing that there is.
func TestWrongQuestions(t *testing.T) {
	rec := recorded(t, ledger, "SIGABRT", "gcc", "-O1", "-pthread")
	far := evidence.Moment{Thread: 2, Ordinal: 99999}
	late, early := evidence.Moment{Thread: 1, Ordinal: 20}, evidence.Moment{Thread: 1, Ordinal: 3}
	for _, x := range []struct {
		q    ask.Question
		want string
	}{
		{ask.Question{Form: ask.FormWrites, Asked: "bokked"}, "there is booked"},
		{ask.Question{Form: ask.FormWrites, Asked: "head->balanc"}, "has no member balanc; there is balance"},
		{ask.Question{Form: ask.FormWrites, Asked: "booked + 1"}, "no memory that could be written"},
		{ask.Question{Form: ask.FormWrites, Asked: "junk"}, "there is no variable junk"},
		{ask.Question{Form: ask.FormWrites, Asked: "*(int *)8"}, "where no memory is"},
		{ask.Question{Form: ask.FormWrites, Asked: "booked +"}, "booked +"},
		{ask.Question{Form: ask.FormCalls, Asked: "setle"}, "there is settle"},
		{ask.Question{Form: ask.FormExecuted, Asked: "ledger.c:2"}, "no code begins at that line"},
		{ask.Question{Form: ask.FormDid, Asked: "clerk"}, "2 threads were started with it"},
		{ask.Question{Form: ask.FormDid, Asked: "17"}, `thread 3 "clerk"`},
		{ask.Question{Form: ask.FormHolders, Asked: "booked"}, "no type of lock"},
		{ask.Question{Form: ask.FormWrites, Asked: "booked", Until: &far}, "thread 2 has"},
		{ask.Question{Form: ask.FormWrites, Asked: "booked", From: &late, Until: &early}, "is not before 1:3"},
	} {
		_, err := ask.Ask(t.Context(), rec, &x.q)
		var wrong *ask.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s %s: %v, want %q", x.q.Form, x.q.Asked, err, x.want)
		}
	}
}

// TestOtherState: where replays end in another state than the recording, the answer says so first, and claims nothing about all of the recording.
func TestOtherState(t *testing.T) {
	rec := recorded(t, ledger, "SIGABRT", "gcc", "-O0", "-pthread")
	executed := func() *ask.Answer {
		return answer(t, rec, ask.Question{Form: ask.FormExecuted, Asked: fmt.Sprintf("ledger.c:%d", line(t, ledger, "COUNT"))})
	}
	if a := executed(); !a.Coverage.Complete {
		t.Fatalf("%+v", a.Coverage)
	}
	if err := rec.SetFound(&record.Found{Timing: record.TimingEager, OtherState: 3, By: "search", Attempts: 1}); err != nil {
		t.Fatal(err)
	}
	a := executed()
	if a.Coverage.Complete || a.Coverage.Unchanged() || len(a.Coverage.Limits) == 0 || a.Coverage.Limits[0].Code != evidence.LimitOtherState {
		t.Errorf("%+v", a.Coverage)
	}
}
