package tally

import (
	"strings"
	"testing"

	"diagnose/bench/truth/score"
	"diagnose/bench/truth/threads/raced"
	"diagnose/evidence"
)

func TestPage(t *testing.T) {
	wrong := &evidence.Case{Diagnosis: &evidence.Diagnosis{Causes: []evidence.Cause{{Kind: evidence.CauseAtomicity, Variable: "done", Site: &evidence.Site{File: "/src/queue.c", Line: 7}}}}}
	events := Row{Program: "queue", Build: "gcc -O0", Way: "events", Runs: 24, Failing: 3, Diagnosed: 2}
	events.Add(false, score.Score{Outcome: score.Right, Proved: true}, nil)
	events.Add(false, score.Score{Outcome: score.Right}, nil)
	events.Add(true, score.Score{Outcome: score.WrongProved, Proved: true}, wrong)
	events.Add(true, score.Score{Outcome: score.ToolFailed}, nil)
	turns := Row{Program: "queue", Build: "gcc -O0", Way: "turns", Runs: 24, Failing: 24, Diagnosed: 2}
	turns.Add(false, score.Score{Outcome: raced.Lead}, nil)
	turns.Add(false, score.Score{Outcome: score.Wrong}, wrong)
	text := Page(Header{Commit: "abc", Runs: 24, Per: 2, Planned: 2}, []Row{events, turns})
	for _, want := range []string{
		"By commit abc. Runs of each build in each way: 24;",
		"Of all: 2 causes are said to be proved, 1 of them wrongly; with 95 % confidence at most 97.47 %.",
		"\n| events | alone | 1 | 1 | 0 | 0 | 0 | 0 | 0 |\n| events | with a passing run | 0 | 0 | 0 | 0 | 0 | 1 | 1 |\n| turns | alone | 0 | 0 | 1 | 0 | 1 | 0 | 0 |\n",
		"\n| queue | gcc -O0 | events | 24 | 3 | 2 | 1 | 1 | 0 | 0 | 0 | 1 | 1 |\n",
		"\n| queue | gcc -O0 | events | with a passing run | wrong and proved | atomicity-violation | done | queue.c:7 |\n",
		"\n| queue | gcc -O0 | turns | alone | wrong | atomicity-violation | done | queue.c:7 |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "The time was up") {
		t.Error("the time was not up")
	}
	text = Page(Header{Planned: 3}, nil)
	if !strings.Contains(text, "0 of 3 builds") || !strings.Contains(text, "no cause is said to be proved") {
		t.Error(text)
	}
}
