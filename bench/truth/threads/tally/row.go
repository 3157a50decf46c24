package tally

import (
	"diagnose/bench/truth/score"
	"diagnose/evidence"
)

// Row is what one build of a program gave in one way of recording.
type Row struct {
	Program string
	// Build is the compiler and the level of optimisation, Way the kind of races that were recorded.
	Build, Way string
	// Runs is how many were tried. Failing of them were recorded and failed, and Diagnosed of these were diagnosed.
	Runs, Failing, Diagnosed int
	// Alone counts the diagnoses of one recording, Together those with a passing one.
	Alone, Together Counts
	// Wrong are the causes that are not the bug.
	Wrong []Wrong
}

// Counts is how many diagnoses were judged so.
type Counts map[score.Score]int

// Wrong is a first cause that is not the bug.
type Wrong struct {
	Together bool
	score.Score
	Kind     evidence.CauseKind
	Variable string
	// Site is where the cause is; nil: it has no place.
	Site *evidence.Site
}

// Add counts a judgement on a report; nil: there is none.
func (r *Row) Add(together bool, s score.Score, c *evidence.Case) {
	counts := &r.Alone
	if together {
		counts = &r.Together
	}
	if *counts == nil {
		*counts = Counts{}
	}
	(*counts)[s]++
	if s.Outcome == score.Wrong || s.Outcome == score.WrongProved {
		first := &c.Diagnosis.Causes[0]
		r.Wrong = append(r.Wrong, Wrong{together, s, first.Kind, first.Variable, first.Site})
	}
}
