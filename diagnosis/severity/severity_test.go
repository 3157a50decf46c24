package severity

import (
	"testing"

	"diagnose/evidence"
)

func nullRead() *evidence.Case {
	return &evidence.Case{Failure: evidence.Failure{Kind: evidence.NullPointer, Sentence: "null pointer read", Proof: evidence.FromCore,
		Signal: &evidence.Signal{Number: 11, HasAddr: true}, Fault: &evidence.Fault{Access: evidence.Read, Proof: evidence.FromCore}}}
}

// cause makes a cause with one access at its place.
func cause(kind evidence.CauseKind, access evidence.AccessKind, memory evidence.IdentityKind, proof evidence.Proof) evidence.Cause {
	at := evidence.Site{Function: "put", File: "put.c", Line: 7}
	return evidence.Cause{Kind: kind, Site: &at, Proof: proof, Summary: "x",
		Story: []evidence.CauseStep{{Text: "x", Proof: proof, Access: &evidence.SeenAccess{Kind: access, Site: &at, Identity: evidence.Identity{Kind: memory}}}}}
}

func TestCausesAndFindings(t *testing.T) {
	damage := &evidence.Damage{}
	for name, c := range map[string]struct {
		findings   []evidence.Finding
		causes     []evidence.Cause
		class      evidence.SeverityClass
		estimate   evidence.Exploitability
		controlled bool
	}{
		"nothing": {class: evidence.ClassSourceAVNearNull, estimate: evidence.NotExploitable},
		"written after free": {causes: []evidence.Cause{cause(evidence.CauseUseAfterFree, evidence.Write, evidence.IdentityHeap, evidence.Replayed)},
			class: evidence.ClassUseAfterFreeWrite, estimate: evidence.Exploitable},
		"read after free": {causes: []evidence.Cause{cause(evidence.CauseUseAfterFree, evidence.Read, evidence.IdentityHeap, evidence.Replayed)},
			class: evidence.ClassSourceAVNearNull, estimate: evidence.NotExploitable},
		"only inferred": {causes: []evidence.Cause{cause(evidence.CauseHeapOverflow, evidence.Write, evidence.IdentityHeap, evidence.Inferred)},
			class: evidence.ClassHeapOverflowWrite, estimate: evidence.ProbablyExploitable},
		"return address": {causes: []evidence.Cause{cause(evidence.CauseOverwritten, evidence.Write, evidence.IdentityReturn, evidence.Replayed)},
			class: evidence.ClassStackBufferWrite, estimate: evidence.Exploitable},
		"unknown memory": {causes: []evidence.Cause{cause(evidence.CauseOverwritten, evidence.Write, evidence.IdentityMemory, evidence.Replayed)},
			class: evidence.ClassSourceAVNearNull, estimate: evidence.NotExploitable},
		"race": {causes: []evidence.Cause{cause(evidence.CauseAtomicity, evidence.Write, evidence.IdentityStatic, evidence.Replayed)},
			class: evidence.ClassSourceAVNearNull, estimate: evidence.NotExploitable},
		"damaged guard": {findings: []evidence.Finding{{Kind: evidence.FindingHeapOverflow, Damage: damage, Proof: evidence.FromCore}},
			class: evidence.ClassHeapOverflowWrite, estimate: evidence.Exploitable},
		"second free": {findings: []evidence.Finding{{Kind: evidence.FindingDoubleFree, Proof: evidence.FromCore}},
			class: evidence.ClassDoubleFree, estimate: evidence.ProbablyExploitable},
		"null from input": {causes: []evidence.Cause{cause(evidence.CauseBadInput, evidence.Write, evidence.IdentityStatic, evidence.Replayed)},
			class: evidence.ClassSourceAVNearNull, estimate: evidence.NotExploitable},
	} {
		in := nullRead()
		in.Findings = c.findings
		if c.causes != nil {
			in.Diagnosis = &evidence.Diagnosis{Causes: c.causes}
		}
		s := Of(Input{Case: in})
		if s == nil || s.Class != c.class || s.Estimate != c.estimate || s.Controlled != c.controlled || s.AtFailure != evidence.ClassSourceAVNearNull {
			t.Errorf("%s: %+v, want %s %s", name, s, c.class, c.estimate)
			continue
		}
		in.Severity, in.Findings, in.Diagnosis = s, nil, nil
		if err := in.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An address that input determines is worse than one that it does not.
func TestControlled(t *testing.T) {
	in := nullRead()
	in.Failure.Kind, in.Failure.Fault.Addr = evidence.WildPointer, 1<<40
	plain := Of(Input{Case: in})
	in.Diagnosis = &evidence.Diagnosis{Causes: []evidence.Cause{cause(evidence.CauseBadInput, evidence.Write, evidence.IdentityStatic, evidence.Replayed)}}
	controlled := Of(Input{Case: in})
	if plain.Estimate != evidence.NotExploitable || controlled.Estimate != evidence.ProbablyExploitable || !controlled.Controlled || controlled.Score() <= plain.Score() {
		t.Errorf("%+v, then %+v", plain, controlled)
	}
}

// A run that ended with a status has the severity of the damage that it left, and none without.
func TestWithoutSignal(t *testing.T) {
	in := &evidence.Case{Failure: evidence.Failure{Kind: evidence.ExitStatus, Proof: evidence.FromCore}}
	if s := Of(Input{Case: in}); s != nil {
		t.Errorf("%+v, want none", s)
	}
	in.Findings = []evidence.Finding{{Kind: evidence.FindingUseAfterFree, Damage: &evidence.Damage{}, Proof: evidence.FromCore}}
	if s := Of(Input{Case: in}); s == nil || s.AtFailure != "" || s.Class != evidence.ClassUseAfterFreeWrite {
		t.Errorf("%+v, want a write after free", s)
	}
}
