package ask_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"diagnose/ask"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
	"diagnose/replay/record"
)

// TestCXX: members, qualified names, templates, and a std::mutex.
func TestCXX(t *testing.T) {
	crashtest.TracesAccesses(t)
	const file, takings = "../internal/testdata/ask/stock.cc", 5
	for _, b := range []struct{ compiler, level string }{{"g++", "-O0"}, {"g++", "-O2"}, {"clang++", "-O0"}, {"clang++", "-O2"}} {
		t.Run(b.compiler+b.level, func(t *testing.T) {
			rec := recorded(t, file, "SIGABRT", b.compiler, b.level, "-pthread")
			a := answer(t, rec, ask.Question{Form: ask.FormWrites, Asked: "shop::stock->parts"})
			own := 0
			for _, w := range a.Writes {
				if w.Site.Line == line(t, file, "TAKE") && w.By == ask.ByProgram {
					own++
				}
			}
			if own != 2*takings || a.Writes[len(a.Writes)-1].New != "70" || a.Memory.Home != ask.HomeHeap {
				t.Errorf("%d writes by take, %+v", own, a.Memory)
			}
			a = answer(t, rec, ask.Question{Form: ask.FormHolders, Asked: "shop::stock->lock"})
			if len(a.Holds) != 2*takings {
				t.Errorf("%d holds", len(a.Holds))
			}
			a = answer(t, rec, ask.Question{Form: ask.FormCalls, Asked: "shop::Stock::take"})
			if len(a.Calls) != 2*takings {
				t.Fatalf("%d calls", len(a.Calls))
			}
			for _, c := range a.Calls {
				if c.Returned == nil || c.Result == nil || c.Arguments[1].Value.Text != fmt.Sprint(2*(int(c.Thread)-1)) {
					t.Errorf("%+v", c)
				}
			}
			a = answer(t, rec, ask.Question{Form: ask.FormCalls, Asked: "twice"})
			if len(a.Calls) != 2*takings {
				t.Errorf("%d calls of a template", len(a.Calls))
			}
		})
	}
}

// TestRust: a static variable, a function with its module, and a Mutex that no event of the log names.
func TestRust(t *testing.T) {
	crashtest.TracesAccesses(t)
	const file, rounds = "../internal/testdata/ask/tally.rs", 5
	for _, level := range []string{"0", "2"} {
		t.Run("O"+level, func(t *testing.T) {
			rec := rust(t, file, level)
			a := answer(t, rec, ask.Question{Form: ask.FormValues, Asked: "tally::LAST"})
			if n := len(a.Values); n != 2*rounds+1 || a.Values[n-1].Value.Text != "15" {
				t.Errorf("%+v", a.Values)
			}
			a = answer(t, rec, ask.Question{Form: ask.FormHolders, Asked: "tally::TALLY"})
			if len(a.Holds) != 2*rounds+1 {
				t.Errorf("%d holds", len(a.Holds))
			}
			for i, h := range a.Holds {
				if h.Released == nil || h.Releaser != 0 || i > 0 && h.Position < a.Holds[i-1].Released.Position {
					t.Errorf("%+v", h)
				}
			}
			a = answer(t, rec, ask.Question{Form: ask.FormCalls, Asked: "tally::count"})
			if len(a.Calls) != 2*rounds+1 {
				t.Errorf("%d calls", len(a.Calls))
			}
		})
	}
}

func rust(t *testing.T, file, level string) *record.Recording {
	t.Helper()
	path, err := exec.LookPath("rustc")
	if err != nil {
		t.Skip(err)
	}
	exe := filepath.Join(t.TempDir(), "tally")
	if out, err := exec.Command(path, "-g", "-Copt-level="+level, "-o", exe, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rec, err := record.Open(recordtest.RecordProgram(t, exe, nil, "", "SIGABRT").Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec
}
