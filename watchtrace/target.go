package watchtrace

import (
	"strings"

	"diagnose/evidence"
)

// Target is memory to trace, in the program's terms. A list of targets is in
// the order of interest: those beyond the budgets are dropped from its end.
type Target struct {
	// Name is the same in every recording of the program; Type is in source
	// syntax.
	Name, Type string
	// Identity identifies the memory; without a kind, Name does as an expression.
	Identity evidence.Identity
	Addr     evidence.Addr
	Size     int
	// Stride, if not 0, says that only the first Part bytes of every Stride bytes belong to
	// it: a member of an array's elements.
	Stride, Part int
	// Writes excludes reads.
	Writes bool
	// Absent says why it is not in this recording, although in others; then it is not
	// traced, and its Addr is meaningless. Empty: it exists.
	Absent string
	// Group, if not empty, is equal for targets that belong together: they
	// share a pass if they fit into one.
	Group string
}

// Identified returns the target's identity.
func (t *Target) Identified() evidence.Identity {
	if t.Identity.Kind == "" {
		return evidence.Expression(t.Name)
	}
	return t.Identity
}

// Suspects returns the suspects of a scan as targets, the strongest first.
func Suspects(scan *evidence.Scan) []Target {
	targets := make([]Target, 0, len(scan.Suspects))
	for i := range scan.Suspects {
		s := &scan.Suspects[i]
		targets = append(targets, Target{Name: s.Name, Type: s.Type, Addr: s.Address, Size: s.Size, Group: groupOf(s.Name)})
	}
	return targets
}

// groupOf returns the object that a path starts in: members of one struct
// belong together.
func groupOf(name string) string {
	if i := max(strings.LastIndexByte(name, '.'), strings.LastIndex(name, "->")); i > 0 {
		return name[:i]
	}
	return ""
}

// NameError says that a watch expression names nothing, and what it could have
// meant.
type NameError struct {
	Expr string
	// Problem describes the error; Nearest are names that exist, the likeliest
	// first.
	Problem string
	Nearest []string
}

func (e *NameError) Error() string { return "watchtrace: " + e.Bare() }

// Bare is the text for wording.Bare.
func (e *NameError) Bare() string {
	text := e.Expr + ": " + e.Problem
	if len(e.Nearest) > 0 {
		text += "; there is " + strings.Join(e.Nearest, ", ")
	}
	return text
}
