package provenance

import (
	"os"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/internal/recordtest"
)

func TestMain(m *testing.M) { recordtest.Main(m) }

// TestWay follows the bad value of each program of internal/testdata/flow. A comment in the program says where the way ends:
// "WAY: END [by CALL] in FUNCTION", and through which function it leads.
func TestWay(t *testing.T) {
	for _, p := range recordtest.Programs(t, "../../internal/testdata/flow") {
		t.Run(p.Name, func(t *testing.T) { followOne(t, p) })
		t.Run(p.Name+"/clang", func(t *testing.T) {
			other := *p
			other.Clang = true
			followOne(t, &other)
		})
	}
}

func followOne(t *testing.T, p *recordtest.Program) {
	rec, core := p.Record(t).Open(t)
	trace, err := flow.Record(t.Context(), rec, flow.Request{})
	if err != nil || trace.Cut {
		t.Fatalf("%v, cut %v", err, trace != nil && trace.Cut)
	}
	thread := rec.Manifest.Outcome.Thread
	last := trace.Last(thread)
	var w *Way
	ok := true
	if p.Ends == "SIGABRT" {
		w = Value(trace, NewImage(core), flow.Register(thread, x86.RDI, 8), last)
	} else {
		if w, ok = Failing(trace, NewImage(core), last); ok {
			w = FirstBroken(trace, NewImage(core), w, true)
		}
	}
	if !ok {
		t.Fatal("the failing instruction reads no value")
	}
	want := wayOf(t, p.Source)
	for w.End == Outside && w.Led != nil && !strings.HasPrefix(want, "outside") {
		w = w.Led
	}
	if got := describe(core, w, want); got != want {
		t.Errorf("the way is %q, want %q: %+v", got, want, w)
	}
}

var endNames = map[EndKind]string{Undecided: "undecided", Constant: "constant", Input: "input", Returned: "returned", Unset: "unset",
	Freed: "freed", Left: "left", Outside: "outside", Initial: "initial", Made: "made", Pieces: "pieces", Overwrote: "overwrote", Loop: "loop", Zeroed: "zeroed", Tested: "tested", Reused: "reused"}

// describe is a way in the form of the comments.
func describe(core *image.Process, w *Way, want string) string {
	function := func(pc evidence.Addr) string {
		for _, c := range core.Symbolize(pc, image.AtInstruction) {
			if c.Site.Line > 0 && !image.LibraryCode(&c.Site) {
				name, _, _ := strings.Cut(c.Site.Function, "(")
				return name
			}
		}
		return "?"
	}
	at := w.PC
	switch {
	case w.End == Unset, w.End == Zeroed:
		at = w.AccessPC
	case len(w.Links) > 0 && w.End == Constant:
		for _, l := range w.Links {
			if l.Kind == Stored {
				at = l.PC
			}
		}
	}
	text := endNames[w.End]
	if w.Call != "" && strings.Contains(want, " by ") {
		text += " by " + strings.TrimLeft(w.Call, "_")
	}
	text += " in " + function(at)
	if w.Narrowed != nil {
		text += ", of a size that lost bits in " + function(w.Narrowed.PC)
	}
	if _, through, ok := strings.Cut(want, ", through "); ok {
		for _, l := range w.Links {
			if function(l.PC) == through {
				return text + ", through " + through
			}
		}
	}
	return text
}

func wayOf(t *testing.T, source string) string {
	b, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "// WAY: ")
	if !ok {
		t.Fatalf("%s says no way", source)
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "*/"))
}
