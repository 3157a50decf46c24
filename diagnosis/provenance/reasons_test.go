package provenance

import (
	"os"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image"
	"diagnose/internal/recordtest"
)

// TestDecided goes back from where each program of internal/testdata/decided gave up. A comment in the program says what decided:
// "DECIDED: END in FUNCTION", or that nothing is known to be wrong.
func TestDecided(t *testing.T) {
	for _, p := range recordtest.Programs(t, "../../internal/testdata/decided") {
		for _, level := range []string{"-O0", "-O2"} {
			for _, clang := range []bool{false, true} {
				one := *p
				one.Flags, one.Clang = append([]string{level}, p.Flags...), clang
				name := p.Name + level
				if clang {
					name += "/clang"
				}
				t.Run(name, func(t *testing.T) { decideOne(t, &one) })
			}
		}
	}
}

func decideOne(t *testing.T, p *recordtest.Program) {
	rec, core := p.Record(t).Open(t)
	trace, err := flow.Record(t.Context(), rec, flow.Request{})
	if err != nil || trace.Cut {
		t.Fatalf("%v, cut %v", err, trace != nil && trace.Cut)
	}
	program := NewImage(core)
	at, status := GaveUp(trace, program, trace.Last(rec.Manifest.Outcome.Thread))
	if at < 0 {
		t.Fatal("the trace does not have the place at which the program gave up")
	}
	if strings.HasPrefix(p.Ends, "SIG") {
		status = flow.Location{}
	}
	r := Decided(trace, program, at, status, true)
	text, err := os.ReadFile(p.Source)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "// DECIDED: ")
	want, _, _ := strings.Cut(rest, "\n")
	if got := decidedText(core, r); got != want {
		t.Errorf("%q decided, want %q", got, want)
		for _, c := range r.Conditions {
			t.Logf("%s: %v", functionAt(core, c.PC), c.Tested)
		}
	}
}

func decidedText(core *image.Process, r *Reasons) string {
	if r.Set != nil {
		return "set in " + functionAt(core, r.Set.PC)
	}
	if len(r.Broken) == 0 {
		return "nothing"
	}
	w := r.Broken[0]
	at := w.PC
	if w.End == Unset || w.End == Outside {
		at = w.AccessPC
	}
	return endNames[w.End] + " in " + functionAt(core, at)
}

// functionAt is the function of the innermost line of the program's own code at an instruction.
func functionAt(core *image.Process, pc evidence.Addr) string {
	for _, c := range core.Symbolize(pc, image.AtInstruction) {
		if c.Site.Line > 0 && !image.LibraryCode(&c.Site) {
			name, _, _ := strings.Cut(c.Site.Function, "(")
			return name
		}
	}
	return "?"
}
