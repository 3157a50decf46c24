package score

import (
	"slices"

	"diagnose/bench/truth/mutant"
	"diagnose/bench/truth/sanitizer"
	"diagnose/evidence"
)

// Outcome is how good a report is.
type Outcome string

// The outcomes, the best first.
const (
	// Right: the headline names the first violation or the bug.
	Right Outcome = "right first"
	// Root: the chain of the first cause contains the bug.
	Root Outcome = "root in chain"
	// Reported: the report names the first violation or the bug elsewhere.
	Reported Outcome = "in the report"
	// Unknown: the report names no cause.
	Unknown Outcome = "unknown"
	// Wrong: the report names another cause.
	Wrong Outcome = "wrong"
	// WrongProved: it even says that the other cause is proved.
	WrongProved Outcome = "wrong and proved"
	// NotReproduced: the program did not fail in this way.
	NotReproduced Outcome = "not reproduced"
	// ToolFailed: diagnose ended without a report, or took too long.
	ToolFailed Outcome = "no report"
	// FalseAlarm: the original was reported.
	FalseAlarm Outcome = "false alarm"
)

// Outcomes are all of them in the order of the columns.
var Outcomes = []Outcome{Right, Root, Reported, Unknown, Wrong, WrongProved, NotReproduced, ToolFailed, FalseAlarm}

// Score is the judgement on one report.
type Score struct {
	Outcome Outcome `json:"outcome"`
	// Proved says that the first cause is said to be proved.
	Proved bool `json:"proved,omitempty"`
}

// Judge compares a report with the answer.
func Judge(c *evidence.Case, answer *mutant.Answer) Score {
	t := target{answer}
	if c.Diagnosis != nil && len(c.Diagnosis.Causes) > 0 {
		return t.judgeCauses(c)
	}
	s := Score{Outcome: t.judgeFailure(c)}
	if c.Diagnosis != nil && s.Outcome == Unknown && t.follows(c.Diagnosis.Leads) {
		s.Outcome = Reported
	}
	return s
}

// follows reports whether one of some causes or leads names the first violation or the bug.
func (t target) follows(list []evidence.Cause) bool {
	return slices.ContainsFunc(list, func(c evidence.Cause) bool { return t.named(&c) || slices.ContainsFunc(chain(&c), t.root) })
}

// judgeCauses is for a report that names a cause.
func (t target) judgeCauses(c *evidence.Case) Score {
	first := &c.Diagnosis.Causes[0]
	s := Score{Outcome: Wrong, Proved: first.Proof == evidence.Proved}
	switch {
	case t.named(first):
		s.Outcome = Right
	case slices.ContainsFunc(chain(first), t.root):
		s.Outcome = Root
	case s.Proved:
		s.Outcome = WrongProved
	case t.follows(c.Diagnosis.Causes[1:]), t.follows(c.Diagnosis.Leads):
		s.Outcome = Reported
	}
	return s
}

// named reports whether a cause's headline is the bug, or the first violation by its place
// or its object.
func (t target) named(c *evidence.Cause) bool {
	if c.Site != nil && t.root(c.Site) || c.Kind == evidence.CauseMissingWakeup && t.unsignalled(c.Variable) || t.unjoined(c.Interleaving) || t.unset(c) {
		return true
	}
	if o := c.Object; o != nil && o.Allocated != nil && t.root(o.Allocated.Site) && t.compatible(c.Kind) {
		return true // the headline names where the object was allocated
	}
	if c.Outside != nil && t.right(c.Outside.Site) && t.compatible(c.Kind) {
		return true // the headline begins with that access, and then says where its index came from
	}
	if i := c.Interleaving; i != nil {
		if slices.ContainsFunc(i.Failing, func(a evidence.SeenAccess) bool { return t.right(a.Site) }) {
			return true
		}
	}
	return t.compatible(c.Kind) && (t.violates(c.Site) || t.object(c.Object))
}

// compatible reports whether a kind of cause does not contradict the first violation.
func (t target) compatible(kind evidence.CauseKind) bool {
	v := t.answer.Violation
	if v == nil {
		return true
	}
	switch kind {
	case evidence.CauseHeapOverflow, evidence.CauseHeapUnderflow, evidence.CauseStackSmashing:
		return v.Class == sanitizer.Bounds || v.Class == sanitizer.Other
	case evidence.CauseUseAfterFree, evidence.CauseDoubleFree:
		return v.Class == sanitizer.Lifetime || v.Class == sanitizer.Other || v.Class == sanitizer.Race
	}
	return true
}

// chain are the places of a cause's story.
func chain(c *evidence.Cause) (list []*evidence.Site) {
	stories := [][]evidence.CauseStep{c.Story}
	for _, v := range c.Compared {
		stories = append(stories, v.Story)
	}
	for _, step := range slices.Concat(stories...) {
		list = append(list, step.Site)
		if step.Access != nil {
			list = append(list, step.Access.Site)
		}
	}
	if c.Interleaving != nil {
		for i := range c.Interleaving.Failing {
			list = append(list, c.Interleaving.Failing[i].Site)
		}
	}
	return list
}

// judgeFailure is for a report that says how the program failed and names no cause, as that
// on a core.
func (t target) judgeFailure(c *evidence.Case) Outcome {
	damage := slices.IndexFunc(c.Findings, func(f evidence.Finding) bool { return claims(f.Kind) })
	switch {
	case t.right(c.Failure.Site), damage >= 0 && t.found(&c.Findings[damage]):
		return Right
	case slices.ContainsFunc(c.Failure.Origin, func(s evidence.OriginStep) bool { return t.root(s.Site) }):
		return Root
	case slices.ContainsFunc(t.rest(c), t.right), slices.ContainsFunc(c.Findings, func(f evidence.Finding) bool { return t.found(&f) }):
		return Reported
	case damage >= 0:
		return Wrong
	}
	return Unknown
}

// rest are the other places of a report: of the other threads only the waits count.
func (t target) rest(c *evidence.Case) []*evidence.Site {
	list := sites(c.Findings)
	list = append(list, sites(c.Scan)...)
	list = append(list, sites(c.Failure.Origin)...)
	if c.Diagnosis != nil {
		list = append(list, sites(c.Diagnosis.Unknown)...)
	}
	for i := range c.Stacks {
		if c.Stacks[i].Failing {
			list = append(list, sites(c.Stacks[i].Stack)...)
		}
	}
	return list
}

// claims reports whether a finding says that the program misused memory or locks, and not only which memory an address belongs to.
func claims(kind evidence.FindingKind) bool {
	switch kind {
	case evidence.FindingHeapOverflow, evidence.FindingHeapUnderflow, evidence.FindingUseAfterFree, evidence.FindingDoubleFree,
		evidence.FindingInvalidFree, evidence.FindingMismatchedFree, evidence.FindingStackGuard, evidence.FindingDeadlock, evidence.FindingSelfLock:
		return true
	}
	return false
}

// found reports whether a finding is the first violation, or at the bug.
func (t target) found(f *evidence.Finding) bool {
	if t.right(f.Site) || f.Call != nil && t.right(f.Call.Site) {
		return true
	}
	if slices.ContainsFunc(f.Wait, func(w evidence.WaitEdge) bool { return t.right(w.Site) }) {
		return true
	}
	return t.agrees(f.Kind) && (t.object(f.Object) || t.object(f.Beyond))
}

// agrees reports whether a kind of finding does not contradict the first violation.
func (t target) agrees(kind evidence.FindingKind) bool {
	v := t.answer.Violation
	if v == nil {
		return true
	}
	switch kind {
	case evidence.FindingHeapOverflow, evidence.FindingHeapUnderflow:
		return v.Class != sanitizer.Lifetime
	case evidence.FindingUseAfterFree, evidence.FindingDoubleFree:
		return v.Class != sanitizer.Bounds
	}
	return true
}
