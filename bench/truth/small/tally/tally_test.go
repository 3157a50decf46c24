package tally

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/bench/truth/score"
	"diagnose/bench/truth/small/program"
	"diagnose/bench/truth/small/trial"
	"diagnose/bench/truth/store"
	"diagnose/evidence"
)

// seedOf is a seed of the hold-out, or none of it.
func seedOf(holdOut bool) uint64 {
	for seed := uint64(0); ; seed++ {
		if program.HoldOut(seed) == holdOut {
			return seed
		}
	}
}

func result(seed uint64, outcome score.Outcome, proof evidence.Proof) *Result {
	p := &program.Program{Seed: seed, Kind: "heap-loop", Ending: "itself", Language: program.C, Compiler: "gcc", Level: "O1", Source: "a", Twin: "b"}
	v := &trial.Verdict{Score: score.Score{Outcome: outcome, Proved: proof == evidence.Proved}, Report: []byte("{}"),
		Headline: &score.Headline{Kind: evidence.CauseHeapOverflow, Proof: proof}}
	return Of(p, v, store.Code{Hash: "h", Commit: "c0ffee1"})
}

// TestHoldOut: nothing that is kept tells what a program of the hold-out is.
func TestHoldOut(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	r := result(seedOf(true), score.WrongProved, evidence.Proved)
	if err := s.Save(r); err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	err := filepath.WalkDir(s.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		kept.WriteString(path + string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"heap-loop", "heap-overflow", "itself", "gcc"} {
		if strings.Contains(kept.String(), secret) {
			t.Errorf("%q is kept", secret)
		}
	}
	back, err := s.Load(r.Seed)
	if err != nil || back == nil || back.Outcome != score.WrongProved || back.Digest != r.Digest || !back.Proved {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestStore(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	seed := seedOf(false)
	if r, err := s.Load(seed); r != nil || err != nil {
		t.Errorf("before it was saved: %+v, %v", r, err)
	}
	if err := s.Save(result(seed, score.Right, evidence.Proved)); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Load(seed); err != nil || r.Kind != "heap-loop" || r.Headline.Kind != evidence.CauseHeapOverflow {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestPage(t *testing.T) {
	open, hold := seedOf(false), seedOf(true)
	var list []Result
	for range 59 {
		list = append(list, *result(open, score.Right, evidence.Proved))
	}
	list = append(list, *result(open, score.Wrong, evidence.Replayed), *result(hold, score.WrongProved, evidence.Proved))
	text := Page(list)
	for _, want := range []string{
		"61 programs were tried, 1 of them of the hold-out",
		"60 causes are said to be proved, 1 of them wrongly; with 95 % confidence at most 7.66 %.",
		"59 causes are said to be proved, 0 of them wrongly; with 95 % confidence at most 4.95 %.",
		"| heap-loop | 59 | 0 | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 0 | 59 | c0ffee1 |",
		"| replayed | 0 | 0 | 0 | 0 | 1 | 0 |",
		"| heap-loop | itself | C, gcc -O1 | wrong | heap-overflow | replayed | c0ffee1 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if !strings.Contains(Page(nil), "no cause is said to be proved") {
		t.Error("a page without results")
	}
}
