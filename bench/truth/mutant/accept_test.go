package mutant

import (
	"testing"

	"diagnose/bench/truth/inject"
	"diagnose/bench/truth/sanitizer"
)

// TestAccept: the answers of a mutant that was kept are those of the operator today, and others are noticed.
func TestAccept(t *testing.T) {
	m := &Mutant{File: "a.c", Bug: inject.Mutation{Root: []int{4}, Objects: []string{"p"}}}
	a := Answer{Violation: &sanitizer.Violation{Kind: "race"}}
	if !a.Accept(m, "one") || a.Operators != "one" || a.Violation == nil {
		t.Errorf("the first: %+v", a)
	}
	if a.Accept(m, "two") || a.Operators != "two" {
		t.Errorf("the same answers: %+v", a)
	}
	m.Bug.Root = []int{4, 6}
	if !a.Accept(m, "three") || len(a.Root) != 2 {
		t.Errorf("another answer: %+v", a)
	}
	m.Bug.Unjoined, m.Bug.Line, m.Bug.Function = true, 7, "main"
	if !a.Accept(m, "four") || a.Unjoined == nil || a.Unjoined.Line != 7 || a.Accept(m, "five") {
		t.Errorf("a join that was taken out: %+v", a)
	}
}
