package severity

import "diagnose/evidence"

// damage makes a reason of a class. What is only inferred is no ground for the highest estimate.
func damage(kind evidence.SeverityReasonKind, class evidence.SeverityClass, access evidence.AccessKind, proof evidence.Proof) evidence.SeverityReason {
	r := evidence.SeverityReason{Kind: kind, Class: class, Estimate: class.Estimate(), Access: access, Proof: proof}
	if proof == evidence.Inferred && r.Estimate == evidence.Exploitable {
		r.Estimate = evidence.ProbablyExploitable
	}
	return r
}

// byFinding is the class of a finding. Bytes that are not as they were left were written. Without
// such bytes, an overflow is what the failing instruction did.
func byFinding(f *evidence.Finding, failure *evidence.Failure) (evidence.SeverityReason, bool) {
	access := evidence.Write
	if f.Damage == nil && f.Heap == nil {
		access = ""
		if failure.Fault != nil {
			access = failure.Fault.Access
		}
	}
	var class evidence.SeverityClass
	switch f.Kind {
	case evidence.FindingHeapOverflow, evidence.FindingHeapUnderflow:
		class = overflow.class(access)
	case evidence.FindingUseAfterFree:
		if f.Damage == nil { // a pointer was read from the freed object
			access = evidence.Read
		}
		class = useAfterFree.class(access)
	case evidence.FindingFreedMemory:
		access, class = evidence.Read, evidence.ClassUseAfterFreeRead
	case evidence.FindingHeapHeader:
		class = evidence.ClassHeapError
	case evidence.FindingStackGuard:
		class = evidence.ClassStackGuard
	case evidence.FindingDoubleFree:
		access, class = "", evidence.ClassDoubleFree
	case evidence.FindingInvalidFree:
		access, class = "", evidence.ClassBadFree
	case evidence.FindingMismatchedFree:
		access, class = "", evidence.ClassMismatchedFree
	default:
		return evidence.SeverityReason{}, false
	}
	return damage(evidence.ReasonFinding, class, access, f.Proof), true
}

// byAccess are the classes of one kind of damage: by a write, by a read, and where it is not known which it was.
type byAccess struct{ write, read, unknown evidence.SeverityClass }

var (
	overflow     = byAccess{evidence.ClassHeapOverflowWrite, evidence.ClassHeapOverflowRead, evidence.ClassHeapOverflow}
	useAfterFree = byAccess{evidence.ClassUseAfterFreeWrite, evidence.ClassUseAfterFreeRead, evidence.ClassUseAfterFree}
)

func (b byAccess) class(access evidence.AccessKind) evidence.SeverityClass {
	switch {
	case access.Writes():
		return b.write
	case access == evidence.Read:
		return b.read
	}
	return b.unknown
}

// byCauses are the classes of causes that are damage or misuse of memory.
func byCauses(causes []evidence.Cause) []evidence.SeverityReason {
	var list []evidence.SeverityReason
	for i := range causes {
		c := &causes[i]
		seen := ownAccess(c)
		access := evidence.AccessKind("")
		if seen != nil {
			access = seen.Kind
		}
		var class evidence.SeverityClass
		switch c.Kind {
		case evidence.CauseHeapOverflow, evidence.CauseHeapUnderflow:
			class = overflow.class(access)
		case evidence.CauseUseAfterFree:
			class = useAfterFree.class(access)
		case evidence.CauseDoubleFree:
			class = evidence.ClassDoubleFree
		case evidence.CauseStackSmashing:
			access, class = evidence.Write, evidence.ClassStackBufferWrite
		case evidence.CauseOverwritten:
			class = overwrittenClass(seen)
		}
		if class == "" {
			continue
		}
		r := damage(evidence.ReasonCause, class, access, c.Proof)
		r.Number = i + 1
		list = append(list, r)
	}
	return list
}

// ownAccess is the access of a memory error that its cause names: the one of the story at the cause's
// place. Nil: the story has none.
func ownAccess(c *evidence.Cause) *evidence.SeenAccess {
	if c.Site == nil {
		return nil
	}
	for i := range c.Story {
		a := c.Story[i].Access
		if a != nil && a.Site != nil && a.Site.Function == c.Site.Function && a.Site.File == c.Site.File && a.Site.Line == c.Site.Line && a.Kind != "" && !a.ByHeap {
			return a
		}
	}
	return nil
}

// overwrittenClass is that of a store that hit another variable than was meant; empty: it is not
// known what memory that is.
func overwrittenClass(seen *evidence.SeenAccess) evidence.SeverityClass {
	if seen == nil || !seen.Kind.Writes() {
		return ""
	}
	switch seen.Identity.Kind {
	case evidence.IdentityStatic:
		return evidence.ClassGlobalOverflowWrite
	case evidence.IdentityHeap:
		return evidence.ClassHeapOverflowWrite
	case evidence.IdentityStack, evidence.IdentityReturn:
		return evidence.ClassStackBufferWrite
	}
	return ""
}

// byInput reports a failing access whose bad value the program's input determines, as replays
// showed. It raises a read by one level: its address is not the program's choice.
func byInput(causes []evidence.Cause, at evidence.SeverityClass) (evidence.SeverityReason, bool) {
	if at == "" || at.Estimate() == evidence.NotExploitable && at != evidence.ClassSourceAV && at != evidence.ClassAccessViolation {
		return evidence.SeverityReason{}, false
	}
	for i := range causes {
		c := &causes[i]
		if c.Kind != evidence.CauseBadInput || c.Proof != evidence.Proved && c.Proof != evidence.Replayed {
			continue
		}
		r := evidence.SeverityReason{Kind: evidence.ReasonInput, Class: at, Estimate: at.Estimate(), Number: i + 1, Proof: c.Proof}
		if r.Estimate == evidence.NotExploitable {
			r.Estimate = evidence.ProbablyExploitable
		}
		return r, true
	}
	return evidence.SeverityReason{}, false
}
