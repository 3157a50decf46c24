package trial

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"diagnose/bench/truth/mutant"
	"diagnose/bench/truth/sanitizer"
	"diagnose/bench/truth/score"
	"diagnose/bench/truth/small/program"
	"diagnose/bench/truth/ways"
	"diagnose/evidence"
)

func line(n int) *evidence.Site { return &evidence.Site{File: "small.c", Line: n, Function: "f"} }

// TestJudge: of an order of accesses two have to be the bug's.
func TestJudge(t *testing.T) {
	answer := &mutant.Answer{File: "small.c", Root: []int{4, 5}}
	order := func(proof evidence.Proof, lines ...int) *evidence.Case {
		i := &evidence.Interleaving{}
		for _, n := range lines {
			i.Failing = append(i.Failing, evidence.SeenAccess{Site: line(n), Variable: "stock.left"})
		}
		return &evidence.Case{Diagnosis: &evidence.Diagnosis{Causes: []evidence.Cause{{Kind: evidence.CauseOrder, Proof: proof, Site: line(4), Interleaving: i}}}}
	}
	handedOn := &evidence.Case{Diagnosis: &evidence.Diagnosis{Causes: []evidence.Cause{{Kind: evidence.CauseBadValue, Proof: evidence.Proved, Site: line(9),
		Story: []evidence.CauseStep{{Site: line(4)}}}}}}
	threads := program.Program{Passing: []string{"1", "2"}}
	for _, test := range []struct {
		c    *evidence.Case
		p    program.Program
		want score.Outcome
	}{
		{order(evidence.Proved, 4, 5), threads, score.Right},
		{order(evidence.Proved, 4, 9), threads, score.WrongProved},
		{order(evidence.Replayed, 4, 9), threads, score.Wrong},
		{order(evidence.Replayed, 4, 9), program.Program{}, score.Right},
		{order(evidence.Proved, 8, 9), program.Program{Passing: threads.Passing, Variable: "left"}, score.Right},
		{order(evidence.Proved, 8, 9), program.Program{Passing: threads.Passing, Variable: "eft"}, score.WrongProved},
		{handedOn, threads, score.WrongProved},
		{handedOn, program.Program{}, score.Root},
		{&evidence.Case{}, threads, score.Unknown},
	} {
		if got := judge(test.c, answer, &test.p); got.Outcome != test.want {
			t.Errorf("%+v, want %s", got, test.want)
		}
	}
}

func TestIntended(t *testing.T) {
	p := &program.Program{Root: []int{4, 5}, Seen: []int{8}, Sanitizer: program.Address}
	at := func(class sanitizer.Class, lines ...int) *sanitizer.Violation {
		v := &sanitizer.Violation{Class: class}
		for _, n := range lines {
			v.Accesses = append(v.Accesses, sanitizer.Place{File: "small.c", Line: n})
		}
		return v
	}
	for _, test := range []struct {
		v    *sanitizer.Violation
		want bool
	}{
		{nil, false}, {at(sanitizer.Bounds, 8), true}, {at(sanitizer.Bounds, 9), false},
		{at(sanitizer.Race, 4, 5), true}, {at(sanitizer.Race, 4, 9), false},
	} {
		if got := intended(test.v, p); got != test.want {
			t.Errorf("%+v: %v", test.v, got)
		}
	}
}

// quickSeeds are programs that fail in different ways. None is of the hold-out.
var quickSeeds = []uint64{21, 24, 25}

// TestQuick measures the tool on a few programs: no cause may be wrong, and no twin may be reported.
func TestQuick(t *testing.T) {
	g, err := program.New()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	tool := &ways.Tool{Path: filepath.Join(t.TempDir(), "diagnose"), Cache: cache, Limit: time.Minute}
	build := exec.Command("go", "build", "-o", tool.Path, "./cmd/diagnose")
	build.Dir = "../../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, seed := range quickSeeds {
		if program.HoldOut(seed) {
			t.Fatalf("seed %d is of the hold-out", seed)
		}
		p, err := g.Make(seed)
		if err != nil {
			t.Fatal(err)
		}
		v, err := Run(t.Context(), tool, p, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if v.Outcome != score.Right || v.FalseAlarm {
			t.Errorf("seed %d, %s: %+v", seed, p.Kind, v)
		}
	}
}
