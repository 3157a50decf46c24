package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"diagnose/evidence"
)

// Signature is what a failure is known again by.
type Signature struct {
	// Stack and Cause are digests of the lines, 32 hexadecimal digits; Cause is
	// empty where no cause was seen on a replay.
	Stack string `json:"stack"`
	Cause string `json:"cause,omitempty"`
	// StackLines and CauseLines are the digested lines.
	StackLines []string `json:"stack_lines"`
	CauseLines []string `json:"cause_lines,omitempty"`
}

// Of returns the signature of a failure. It depends on nothing but the Case.
func Of(c *evidence.Case) Signature {
	return Restore(stackLines(c), causeLines(c))
}

// Restore returns the signature of lines that were kept.
func Restore(stack, cause []string) Signature {
	return Signature{Stack: digest(stack), Cause: digest(cause), StackLines: stack, CauseLines: cause}
}

// Cluster is the digest that failures are grouped by: two stacks of one cause are
// one cluster, two causes under one stack are two.
func (s *Signature) Cluster() string {
	if s.Cause != "" {
		return s.Cause
	}
	return s.Stack
}

// digest is that of lines, empty for none. They contain no line feeds.
func digest(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:16])
}
