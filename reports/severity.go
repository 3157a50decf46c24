package reports

import (
	"fmt"
	"strconv"
	"strings"

	"diagnose/evidence"
)

// severityLine is the estimate with its class, and the reasons of the same rank. Less severe reasons
// are in the JSON document.
func severityLine(s *evidence.Severity) line {
	if s == nil {
		return nil
	}
	var why []string
	for i := range s.Reasons {
		if r := &s.Reasons[i]; r.Estimate == s.Estimate {
			text := severityReason(r)
			if r.Class != s.Class {
				text += " (" + string(r.Class) + ")"
			}
			why = append(why, text)
		}
	}
	return say(strong, string(s.Estimate)).and(plain, " ("+string(s.Class)+"): "+strings.Join(why, "; ")).and(faint, proofMark(s.Proof))
}

// suppressionLine says that the failure is suppressed, or was until its suppression expired.
func suppressionLine(s *evidence.Suppression) line {
	switch {
	case s == nil:
		return nil
	case s.Expired:
		return say(caveat, fmt.Sprintf("no more: entry %d expired after %s", s.Entry, s.Until)).and(plain, ": "+s.Reason)
	}
	return say(strong, fmt.Sprintf("until %s by entry %d", s.Until, s.Entry)).and(plain, ": "+s.Reason)
}

// severityReason is a reason as a clause without a final stop.
func severityReason(r *evidence.SeverityReason) string {
	switch r.Kind {
	case evidence.ReasonSignal:
		return signalReason(r)
	case evidence.ReasonCheck:
		return "a check ended the program: " + string(r.Failure)
	case evidence.ReasonFetch:
		return "the processor was to execute at " + addressReason(r)
	case evidence.ReasonControl:
		return r.Instruction + " could not continue, at " + addressReason(r)
	case evidence.ReasonAccess:
		return accessReason(r)
	case evidence.ReasonNextUse:
		if r.Access == evidence.Execute {
			return fmt.Sprintf("the value to be loaded is where %s at %v continues", r.Instruction, *r.PC)
		}
		return fmt.Sprintf("the value to be loaded is a part of the address that %s at %v writes to", r.Instruction, *r.PC)
	case evidence.ReasonFinding:
		return fmt.Sprintf("finding %d shows it", r.Number)
	case evidence.ReasonCause:
		return fmt.Sprintf("cause %d is it", r.Number)
	case evidence.ReasonInput:
		return fmt.Sprintf("input determines the bad value (cause %d)", r.Number)
	}
	return string(r.Class)
}

func signalReason(r *evidence.SeverityReason) string {
	switch r.Class {
	case evidence.ClassAbortSignal:
		return "the program ended itself"
	case evidence.ClassFPE:
		return "an exception of arithmetic"
	case evidence.ClassTrapSignal:
		return "an instruction that stops the program"
	}
	return "the processor or the kernel refused the instruction"
}

func accessReason(r *evidence.SeverityReason) string {
	switch {
	case r.Class == evidence.ClassStackOverflow:
		return "the stack was used up"
	case r.Access == evidence.Read:
		return "a read at " + addressReason(r)
	case r.Access.Writes():
		return "a write at " + addressReason(r)
	}
	return "whether it read or wrote at a bad address is not known"
}

func addressReason(r *evidence.SeverityReason) string {
	if r.Addr == nil {
		return "a bad address"
	}
	if r.NearNull {
		return r.Addr.String() + ", near null"
	}
	return r.Addr.String() + ", not near null"
}

// securityProperties are what code scanning reads of a severity: of a result, and of its rule
// (GitHub, "SARIF support for code scanning", security-severity).
func securityProperties(s *evidence.Severity) map[string]any {
	return map[string]any{"security-severity": securitySeverity(s), "tags": []string{"security"}}
}

func securitySeverity(s *evidence.Severity) string { return strconv.FormatFloat(s.Score(), 'f', 1, 64) }
