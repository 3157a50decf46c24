package evidence

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Event is what a cause claims to be at fault, and what an experiment changed: a store, a call, a
// value that is read, or an order of accesses. Both are written in the same form, so that they can
// be compared.
type Event struct {
	// Thing is the variable, the object or the lock, in the program's terms.
	Thing string `json:"thing"`
	// At is the thread, the place and the arrival there. Of an order of accesses it is the first
	// of them.
	At Moment `json:"at"`
}

// CheckedValue is what a check found.
type CheckedValue struct {
	// Value is the tested value, as far as it is known: the pointer that the failing instruction
	// uses. It is empty for a condition.
	Value string `json:"value,omitempty"`
	// Good says that the program continued.
	Good bool `json:"good"`
}

// FailingCheck is the place at which a run failed, and what came of it with a change.
type FailingCheck struct {
	// Place is the instruction that faulted, or the last condition before the program gave up, or
	// the entry of the function in which it did; 0: the failure was found when the process ended.
	Place Addr `json:"place,omitempty"`
	// Recorded is how often the failing thread of the recorded run came there, Arrivals how often that
	// thread did in the changed run.
	Recorded uint64 `json:"recorded"`
	Arrivals uint64 `json:"arrivals"`
	// Again is how many of the arrivals were after the change. Those before are the recorded run's, and tell nothing of the
	// change.
	Again uint64 `json:"again"`
	// Before is what the check found without the change, After with it.
	Before CheckedValue `json:"before"`
	After  CheckedValue `json:"after"`
	// Guard is the variable whose value kept the changed run's thread from the check, as it does in runs
	// that pass; empty: none is known.
	Guard string `json:"guard,omitempty"`
	// Inputs are the things whose values reach the check, as far as the logs tell; empty: it is not
	// known what the check reads.
	Inputs []string `json:"inputs,omitempty"`
}

// Grounds are why a cause is proved. Only Cause.Prove makes them.
type Grounds struct {
	Claim  Event        `json:"claim"`
	Change Event        `json:"change"`
	Check  FailingCheck `json:"check"`
	// made is set by Cause.Prove.
	made bool
}

// ProofRule is what a proof needs.
type ProofRule string

// The rules of a proof: docs/causes.md gives the reasons.
const (
	RuleLog      ProofRule = "the log of accesses does not contradict itself"
	RuleClaim    ProofRule = "the cause names a thing, a thread and a place"
	RuleRecorded ProofRule = "the run without the change comes out the other way"
	RuleChange   ProofRule = "an experiment that agrees changed what the cause names, and nothing else"
	RuleCheck    ProofRule = "the failing check was evaluated again, and came out the other way"
	RuleFlow     ProofRule = "the value of what the cause names reaches the failing check"
	RuleOwner    ProofRule = "the store is made through a pointer to the object that has the memory"
	RuleOrder    ProofRule = "the failing thread had not read another value there before another thread or a handler made the store"
	RuleGuard    ProofRule = "the function that stores the value does not store it for a use of its own"
	RuleDecision ProofRule = "a run that passes has another value where the program decided to end with a status"
	RuleComputed ProofRule = "the value reaches the failing check as it is, and no other one is computed of it on the way"
	RuleOpen     ProofRule = "the way back of the value ends at a place that is known to be wrong"
	RuleOnly     ProofRule = "no unrelated cause explains the failure as well"
)

// UnprovedError says which rule keeps a cause from being proved.
type UnprovedError struct{ Rule ProofRule }

func (e *UnprovedError) Error() string {
	return "evidence: not proved: it is required that " + string(e.Rule)
}

// Prove makes the cause proved by one of its experiments, which changed what the cause claims. A
// cause whose Site is in no code of the process names no place: a stack that the store had
// overwritten gave it. The error is an *UnprovedError, and the cause is left as it was.
func (c *Cause) Prove(claim Event) error {
	if c.Contradiction != nil {
		return &UnprovedError{RuleLog}
	}
	if claim.Thing == "" || claim.At.Thread == 0 || c.Site != nil && c.Site.Function == "" && c.Site.Module == "" {
		return &UnprovedError{RuleClaim}
	}
	if c.Open != "" {
		return &UnprovedError{RuleOpen}
	}
	if c.Stale {
		return &UnprovedError{RuleOwner}
	}
	if c.Ordered {
		return &UnprovedError{RuleOrder}
	}
	if c.Guard {
		return &UnprovedError{RuleGuard}
	}
	if c.Decision {
		return &UnprovedError{RuleDecision}
	}
	if len(c.Rivals) > 0 {
		return &UnprovedError{RuleOnly}
	}
	broken := RuleChange
	for i := range c.Experiments {
		e := &c.Experiments[i]
		if e.Control || e.Change == nil || *e.Change != claim || !e.Agrees() {
			continue
		}
		if broken = c.broken(e, claim.Thing); broken == "" {
			c.Grounds = &Grounds{Claim: claim, Change: *e.Change, Check: *e.Check, made: true}
			c.Proof = Proved
			return nil
		}
	}
	return &UnprovedError{broken}
}

// Unprove takes the proof back: what replays showed of the cause stays.
func (c *Cause) Unprove() { c.Proof, c.Grounds = Replayed, nil }

// broken is the rule that an experiment with a change of a thing breaks; empty: none.
func (c *Cause) broken(e *Experiment, thing string) ProofRule {
	if !c.unchanged(!e.Expect) {
		return RuleRecorded
	}
	if x := e.Check; x == nil || x.Again == 0 && x.Guard != thing || x.Before.Good == x.After.Good || x.After.Good == e.Expect {
		return RuleCheck
	}
	if in := e.Check.Inputs; len(in) > 0 && !slices.Contains(in, thing) {
		return RuleFlow
	}
	return ""
}

// unchanged reports whether an experiment without a change came out as given, each time.
func (c *Cause) unchanged(failed bool) bool {
	for i := range c.Experiments {
		if e := &c.Experiments[i]; e.Control && e.Expect == failed && e.Agrees() {
			return true
		}
	}
	return false
}

// checkProof refuses a proved cause that Prove did not make, unless it was read from a document.
func (c *Cause) checkProof() error {
	if c.Proof != Proved {
		if c.Grounds != nil {
			return fmt.Errorf("it is %s and has the grounds of a proof", c.Proof)
		}
		return nil
	}
	if c.read {
		return nil
	}
	if c.Grounds == nil || !c.Grounds.made {
		return fmt.Errorf("it is said to be proved, and no proof was made")
	}
	again := *c
	return again.Prove(c.Grounds.Claim)
}

// UnmarshalJSON reads a cause of a report. Its proof is that of the report: documents of older
// versions have no grounds.
func (c *Cause) UnmarshalJSON(data []byte) error {
	type plain Cause
	if err := json.Unmarshal(data, (*plain)(c)); err != nil {
		return err
	}
	c.read = true
	return nil
}
