package evidence

import (
	"fmt"
	"slices"
)

// SeverityClass names what a failure does with memory or control. The names are those that casr
// publishes (ispras/casr, libcasr/src/execution_class.rs), so that its users can compare.
type SeverityClass string

// The classes that follow from the signal and the failing instruction.
const (
	ClassSegFaultOnPC         SeverityClass = "SegFaultOnPc"
	ClassSegFaultOnPCNearNull SeverityClass = "SegFaultOnPcNearNull"
	ClassReturnAV             SeverityClass = "ReturnAv"
	ClassBranchAV             SeverityClass = "BranchAv"
	ClassBranchAVNearNull     SeverityClass = "BranchAvNearNull"
	ClassBranchAVTainted      SeverityClass = "BranchAvTainted"
	ClassCallAV               SeverityClass = "CallAv"
	ClassCallAVNearNull       SeverityClass = "CallAvNearNull"
	ClassCallAVTainted        SeverityClass = "CallAvTainted"
	ClassDestAV               SeverityClass = "DestAv"
	ClassDestAVNearNull       SeverityClass = "DestAvNearNull"
	ClassDestAVTainted        SeverityClass = "DestAvTainted"
	ClassSourceAV             SeverityClass = "SourceAv"
	ClassSourceAVNearNull     SeverityClass = "SourceAvNearNull"
	// ClassAccessViolation is an access of which it is not known whether it read or wrote.
	ClassAccessViolation   SeverityClass = "AccessViolation"
	ClassBadInstruction    SeverityClass = "BadInstruction"
	ClassTrapSignal        SeverityClass = "TrapSignal"
	ClassAbortSignal       SeverityClass = "AbortSignal"
	ClassStackGuard        SeverityClass = "StackGuard"
	ClassSafeFunctionCheck SeverityClass = "SafeFunctionCheck"
	ClassHeapError         SeverityClass = "HeapError"
	ClassFPE               SeverityClass = "FPE"
	ClassStackOverflow     SeverityClass = "StackOverflow"
)

// The classes of damage and misuse, which findings and causes show.
const (
	ClassHeapOverflow        SeverityClass = "heap-buffer-overflow"
	ClassHeapOverflowRead    SeverityClass = "heap-buffer-overflow(read)"
	ClassHeapOverflowWrite   SeverityClass = "heap-buffer-overflow(write)"
	ClassGlobalOverflowWrite SeverityClass = "global-buffer-overflow(write)"
	ClassStackBufferWrite    SeverityClass = "stack-buffer-overflow(write)"
	ClassUseAfterFree        SeverityClass = "heap-use-after-free"
	ClassUseAfterFreeRead    SeverityClass = "heap-use-after-free(read)"
	ClassUseAfterFreeWrite   SeverityClass = "heap-use-after-free(write)"
	ClassDoubleFree          SeverityClass = "double-free"
	ClassBadFree             SeverityClass = "bad-free"
	ClassMismatchedFree      SeverityClass = "alloc-dealloc-mismatch"
)

// Exploitability estimates whether an attacker who controls the program's input could take it
// over by a failure. It sorts failures, and proves nothing: a NotExploitable failure may be.
type Exploitability string

// The estimates.
const (
	Exploitable         Exploitability = "EXPLOITABLE"
	ProbablyExploitable Exploitability = "PROBABLY_EXPLOITABLE"
	NotExploitable      Exploitability = "NOT_EXPLOITABLE"
)

// estimates has the estimate of each class: that of casr but for ClassDoubleFree. A second free gives
// the same memory to two owners; casr estimates it as HeapError where the C library found it, and
// lower where a sanitizer did.
var estimates = map[SeverityClass]Exploitability{
	ClassSegFaultOnPC:         Exploitable,
	ClassSegFaultOnPCNearNull: ProbablyExploitable,
	ClassReturnAV:             Exploitable,
	ClassBranchAV:             Exploitable,
	ClassBranchAVNearNull:     ProbablyExploitable,
	ClassBranchAVTainted:      Exploitable,
	ClassCallAV:               Exploitable,
	ClassCallAVNearNull:       ProbablyExploitable,
	ClassCallAVTainted:        Exploitable,
	ClassDestAV:               Exploitable,
	ClassDestAVNearNull:       ProbablyExploitable,
	ClassDestAVTainted:        Exploitable,
	ClassSourceAV:             NotExploitable,
	ClassSourceAVNearNull:     NotExploitable,
	ClassAccessViolation:      NotExploitable,
	ClassBadInstruction:       ProbablyExploitable,
	ClassTrapSignal:           NotExploitable,
	ClassAbortSignal:          NotExploitable,
	ClassStackGuard:           ProbablyExploitable,
	ClassSafeFunctionCheck:    NotExploitable,
	ClassHeapError:            ProbablyExploitable,
	ClassFPE:                  NotExploitable,
	ClassStackOverflow:        NotExploitable,
	ClassHeapOverflow:         ProbablyExploitable,
	ClassHeapOverflowRead:     NotExploitable,
	ClassHeapOverflowWrite:    Exploitable,
	ClassGlobalOverflowWrite:  Exploitable,
	ClassStackBufferWrite:     Exploitable,
	ClassUseAfterFree:         ProbablyExploitable,
	ClassUseAfterFreeRead:     NotExploitable,
	ClassUseAfterFreeWrite:    Exploitable,
	ClassDoubleFree:           ProbablyExploitable,
	ClassBadFree:              NotExploitable,
	ClassMismatchedFree:       NotExploitable,
}

// Estimate is the estimate of failures of the class; empty for an unknown class.
func (c SeverityClass) Estimate() Exploitability { return estimates[c] }

// Rank orders estimates, the most severe highest; 0 for none, and for one that is not known.
func (e Exploitability) Rank() int {
	return max(0, slices.Index([]Exploitability{"", NotExploitable, ProbablyExploitable, Exploitable}, e))
}

// SeverityReasonKind says what a reason of a severity is.
type SeverityReasonKind string

// The kinds of reason.
const (
	// ReasonSignal is the signal alone: a trap, an abort, an exception of arithmetic.
	ReasonSignal SeverityReasonKind = "signal"
	// ReasonCheck is a check of a library or of the compiler that ended the program: Failure.
	ReasonCheck SeverityReasonKind = "check"
	// ReasonAccess is what the failing instruction did to which address.
	ReasonAccess SeverityReasonKind = "access"
	// ReasonFetch is an address at which the processor could not execute.
	ReasonFetch SeverityReasonKind = "fetch"
	// ReasonControl is a failing return, call or jump: Instruction.
	ReasonControl SeverityReasonKind = "control-flow"
	// ReasonNextUse is an instruction after the failing one that would have used the value which the
	// failing one was to load.
	ReasonNextUse SeverityReasonKind = "next-use"
	// ReasonFinding and ReasonCause are the finding and the cause of that Number.
	ReasonFinding SeverityReasonKind = "finding"
	ReasonCause   SeverityReasonKind = "cause"
	// ReasonInput is a cause by which the program's input determines the bad value.
	ReasonInput SeverityReasonKind = "input"
)

// SeverityReason is a fact from which a class and an estimate follow.
type SeverityReason struct {
	Kind SeverityReasonKind `json:"kind"`
	// Class and Estimate are what follows from this fact alone. An inferred finding or cause is
	// estimated ProbablyExploitable at most.
	Class    SeverityClass  `json:"class"`
	Estimate Exploitability `json:"estimate"`
	// Access is what the instruction did, or would have done, or what the cause did to the memory.
	Access AccessKind `json:"access,omitempty"`
	// Addr is the address of the access. NearNull says that it is below 64 KiB, or a constant
	// distance from a null pointer.
	Addr     *Addr `json:"addr,omitempty"`
	NearNull bool  `json:"near_null,omitempty"`
	// Instruction is the failing instruction, or for ReasonNextUse the later one, and PC its address.
	Instruction string `json:"instruction,omitempty"`
	PC          *Addr  `json:"pc,omitempty"`
	// Failure is the kind of failure of a ReasonCheck or ReasonSignal.
	Failure FailureKind `json:"failure,omitempty"`
	// Number counts the findings, or the causes, from 1.
	Number int   `json:"number,omitempty"`
	Proof  Proof `json:"proof"`
}

// Severity is an estimate of how dangerous a failure is, for triage.
type Severity struct {
	// Class and Estimate are those of the most severe reason.
	Class    SeverityClass  `json:"class"`
	Estimate Exploitability `json:"estimate"`
	// AtFailure is the class by the signal and the failing instruction alone; empty if the process did
	// not end by a signal.
	AtFailure SeverityClass `json:"at_failure,omitempty"`
	// Controlled says that replays showed that input determines the bad value.
	Controlled bool `json:"controlled,omitempty"`
	// Reasons are the facts, the most severe first.
	Reasons []SeverityReason `json:"reasons"`
	// Proof is the level of the most severe reason.
	Proof Proof `json:"proof"`
}

// Score is a number from 0 to 10 that orders failures as security-severity does in SARIF (GitHub:
// over 9.0 critical, from 7.0 high, from 4.0 medium, else low). It is no CVSS score.
func (s *Severity) Score() float64 {
	score := [...]float64{0, 2.5, 6, 8.5}[s.Estimate.Rank()]
	if s.Controlled && score > 0 {
		score += 0.7
	}
	return score
}

// check refuses a severity that does not follow from its reasons.
func (s *Severity) check() error {
	if s == nil {
		return nil
	}
	if len(s.Reasons) == 0 {
		return fmt.Errorf("the severity %s has no reason", s.Class)
	}
	for i := range s.Reasons {
		r := &s.Reasons[i]
		if r.Class.Estimate() == "" || r.Estimate.Rank() < 1 || r.Estimate.Rank() > s.Estimate.Rank() || !r.Proof.Valid() {
			return fmt.Errorf("reason %d of the severity %s: class %q, estimate %q, proof %q", i+1, s.Class, r.Class, r.Estimate, r.Proof)
		}
	}
	if first := &s.Reasons[0]; s.Class != first.Class || s.Estimate != first.Estimate || s.Proof != first.Proof {
		return fmt.Errorf("the severity %s is not that of its first reason, %s", s.Class, first.Class)
	}
	return nil
}
