package evidence

import (
	"encoding/json"
	"errors"
	"testing"
)

// provable is a cause of which the experiments prove that the store of thread 1 is at fault.
func provable() (Cause, Event) {
	claim := Event{Thing: "limit", At: Moment{Thread: 1, Ordinal: 4, PC: 0x401000, Count: 2}}
	change := claim
	return Cause{Kind: CauseBadValue, Summary: "set (a.c:3) gave limit its bad value 0", Proof: Replayed, Experiments: []Experiment{
		{What: "the recorded run again", Failed: 3, Runs: 3, Expect: true, Control: true},
		{What: "the store skipped", Runs: 3, Change: &change, Check: &FailingCheck{Place: 0x401100, Recorded: 1, Arrivals: 1, Again: 1, After: CheckedValue{Good: true}}},
	}}, claim
}

// Each rule of a proof is needed: with one of them broken, the constructor refuses, names the rule
// and leaves the level as it was.
func TestProve(t *testing.T) {
	for name, x := range map[string]struct {
		spoil func(*Cause, *Event)
		rule  ProofRule
	}{
		"as it should be":                     {func(*Cause, *Event) {}, ""},
		"the log contradicts itself":          {func(c *Cause, _ *Event) { c.Contradiction = &Contradiction{Kind: ContradictedValue} }, RuleLog},
		"the claim names nothing":             {func(_ *Cause, e *Event) { e.Thing = "" }, RuleClaim},
		"the claim has no thread":             {func(_ *Cause, e *Event) { e.At.Thread = 0 }, RuleClaim},
		"the place is in no code":             {func(c *Cause, _ *Event) { c.Site = &Site{PC: 0x4343434343434343} }, RuleClaim},
		"another variable was changed":        {func(c *Cause, _ *Event) { c.Experiments[1].Change.Thing = "other" }, RuleChange},
		"another place was changed":           {func(c *Cause, _ *Event) { c.Experiments[1].Change.At.PC++ }, RuleChange},
		"another arrival was changed":         {func(c *Cause, _ *Event) { c.Experiments[1].Change.At.Count++ }, RuleChange},
		"another thread was changed":          {func(c *Cause, _ *Event) { c.Experiments[1].Change.At.Thread++ }, RuleChange},
		"the change is not known":             {func(c *Cause, _ *Event) { c.Experiments[1].Change = nil }, RuleChange},
		"it failed once":                      {func(c *Cause, _ *Event) { c.Experiments[1].Failed = 1 }, RuleChange},
		"the runs tell nothing":               {func(c *Cause, _ *Event) { c.Experiments[1].Undecided = "it diverged" }, RuleChange},
		"the recorded run did not fail again": {func(c *Cause, _ *Event) { c.Experiments[0].Failed = 2 }, RuleRecorded},
		"the recorded run was changed":        {func(c *Cause, _ *Event) { c.Experiments[0].Control = false }, RuleRecorded},
		"the check was not seen":              {func(c *Cause, _ *Event) { c.Experiments[1].Check = nil }, RuleCheck},
		"the check was not evaluated again":   {func(c *Cause, _ *Event) { c.Experiments[1].Check.Again = 0 }, RuleCheck},
		"another value guards the check":      {func(c *Cause, _ *Event) { c.Experiments[1].Check.Again, c.Experiments[1].Check.Guard = 0, "other" }, RuleCheck},
		"the value guards the check":          {func(c *Cause, _ *Event) { c.Experiments[1].Check.Again, c.Experiments[1].Check.Guard = 0, "limit" }, ""},
		"its value does not reach the check":  {func(c *Cause, _ *Event) { c.Experiments[1].Check.Inputs = []string{"other"} }, RuleFlow},
		"its value reaches the check":         {func(c *Cause, _ *Event) { c.Experiments[1].Check.Inputs = []string{"other", "limit"} }, ""},
		"the program's own decision":          {func(c *Cause, _ *Event) { c.Decision = true }, RuleDecision},
		"it is not known where it came from":  {func(c *Cause, _ *Event) { c.Open = OpenOrigin }, RuleOpen},
		"the store is for another use":        {func(c *Cause, _ *Event) { c.Guard = true }, RuleGuard},
		"the store is of another thread":      {func(c *Cause, _ *Event) { c.Ordered = true }, RuleOrder},
		"the pointer of the store is stale":   {func(c *Cause, _ *Event) { c.Stale = true }, RuleOwner},
		"another cause explains it as well":   {func(c *Cause, _ *Event) { c.Rivals = []string{"other"} }, RuleOnly},
		"the check came out as before":        {func(c *Cause, _ *Event) { c.Experiments[1].Check.After.Good = false }, RuleCheck},
		"the check was good before":           {func(c *Cause, _ *Event) { c.Experiments[1].Check.Before.Good = true }, RuleCheck},
	} {
		t.Run(name, func(t *testing.T) {
			c, claim := provable()
			x.spoil(&c, &claim)
			err := c.Prove(claim)
			var unproved *UnprovedError
			if x.rule == "" {
				if err != nil || c.Proof != Proved || c.Grounds == nil || c.checkProof() != nil {
					t.Errorf("%s, %+v, %v", c.Proof, c.Grounds, err)
				}
			} else if !errors.As(err, &unproved) || unproved.Rule != x.rule || c.Proof != Replayed || c.Grounds != nil {
				t.Errorf("%v, %s, want %q", err, c.Proof, x.rule)
			}
		})
	}
}

// A proof is refused where Prove did not make it, or where its experiments were changed later. One
// that was read from a report is the report's.
func TestProofIsMade(t *testing.T) {
	named, _ := provable()
	named.Proof = Proved
	copied, claim := provable()
	if err := copied.Prove(claim); err != nil {
		t.Fatal(err)
	}
	copied.Grounds = &Grounds{Claim: copied.Grounds.Claim, Change: copied.Grounds.Change, Check: copied.Grounds.Check}
	changed, claim := provable()
	if err := changed.Prove(claim); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(changed)
	if err != nil {
		t.Fatal(err)
	}
	changed.Experiments[1].Undecided = "it ended too soon"
	lowered := changed
	lowered.Proof = Replayed
	for name, c := range map[string]*Cause{"the level alone": &named, "grounds of another hand": &copied, "changed later": &changed, "grounds without the level": &lowered} {
		if c.checkProof() == nil {
			t.Errorf("%s: it was taken for proved", name)
		}
	}
	var read Cause
	if err := json.Unmarshal(text, &read); err != nil || read.Proof != Proved || read.checkProof() != nil {
		t.Errorf("a report's cause: %s, %v, %v", read.Proof, err, read.checkProof())
	}
	if err := json.Unmarshal([]byte(`{"proof": "proved"}`), &read); err != nil || read.checkProof() != nil {
		t.Errorf("an older report's cause: %v, %v", err, read.checkProof())
	}
}
