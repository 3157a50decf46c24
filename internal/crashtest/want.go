package crashtest

import (
	"fmt"
	"regexp"
	"strings"

	"diagnose/evidence"
)

// Want is the expected result of the analysis of a fixture's core.
type Want struct {
	Kind evidence.FailureKind
	// Access is empty for failures that are no memory access.
	Access evidence.AccessKind
	// Line is the line of the innermost frame in the program itself (not in libc, libstdc++, core
	// or std), in the fixture's source. If compilers differ in it, it is between Line and LastLine.
	// Both are 0 if the program has no frame left: after its end.
	Line, LastLine int
}

// nowhere is the place of a failure outside the program's own code.
const nowhere = "nowhere"

// At reports whether a line of the fixture's source is the expected one.
func (w Want) At(line int) bool { return line >= w.Line && line <= w.LastLine }

// Nowhere reports whether the program has no part in the failing stack.
func (w Want) Nowhere() bool { return w.Line == 0 }

// wantPattern is `// WANT: kind[ access]:PLACE`, where PLACE is that of a
// resolver or "nowhere".
var wantPattern = regexp.MustCompile(`^([a-z-]+)(?: ([a-z/]+))?:(\S+)$`)

// directive is one `// KEY: value` comment of a fixture.
type directive struct {
	key, value string
	line       int
}

var directivePattern = regexp.MustCompile(`^\s*// ([A-Z]+): (.*)$`)

// directives returns the `// KEY: value` comments of a source text; keys are
// capitals only, so that prose does not match.
func directives(text string) []directive {
	var list []directive
	for i, line := range strings.Split(text, "\n") {
		if m := directivePattern.FindStringSubmatch(line); m != nil {
			list = append(list, directive{m[1], strings.TrimSpace(m[2]), i + 1})
		}
	}
	return list
}

// parseWant reads the value of a WANT comment.
func parseWant(value string, r *resolver) (Want, error) {
	m := wantPattern.FindStringSubmatch(value)
	if m == nil {
		return Want{}, fmt.Errorf("WANT %q is not \"kind access:@LINE+n\"", value)
	}
	want := Want{Kind: evidence.FailureKind(m[1]), Access: evidence.AccessKind(m[2])}
	if want.Access != "" && !want.Access.Valid() {
		return Want{}, fmt.Errorf("WANT has the unknown access %q", m[2])
	}
	if !knownKinds[want.Kind] {
		return Want{}, fmt.Errorf("WANT has the unknown kind %q", m[1])
	}
	if m[3] == nowhere {
		return want, nil
	}
	lines, err := r.lines(m[3])
	if err != nil {
		return Want{}, fmt.Errorf("WANT %q: %w", value, err)
	}
	if lines.File != r.file {
		return Want{}, fmt.Errorf("WANT %q: the place is in %s", value, lines.File)
	}
	want.Line, want.LastLine = lines.First, lines.Last
	return want, nil
}

var knownKinds = map[evidence.FailureKind]bool{
	evidence.NullPointer: true, evidence.NearNullPointer: true, evidence.NonCanonical: true,
	evidence.WildPointer: true, evidence.UnmappedAddress: true, evidence.WriteToReadOnly: true,
	evidence.ProtectedPage: true, evidence.ExecuteOfData: true, evidence.StackOverflow: true,
	evidence.BusError: true, evidence.DivisionByZero: true, evidence.DivisionOverflow: true,
	evidence.ArithmeticError: true, evidence.IllegalInsn: true, evidence.TrapInsn: true,
	evidence.AssertionFailure: true, evidence.Abort: true, evidence.CxxTerminate: true,
	evidence.RustPanic: true, evidence.GoPanic: true, evidence.HeapCorruption: true,
	evidence.FortifyFailure: true, evidence.StackSmashing: true, evidence.Deadlock: true,
	evidence.BadSystemCall: true, evidence.KilledBySignal: true,
	evidence.HeapOverflow: true, evidence.HeapUnderflow: true, evidence.UseAfterFree: true,
	evidence.DoubleFree: true, evidence.InvalidFree: true, evidence.MismatchedFree: true,
}
