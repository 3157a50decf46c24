package crashtest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"diagnose/evidence"
)

// Want is what the analysis of a fixture's core has to say.
type Want struct {
	Kind evidence.FailureKind
	// Access is empty for failures that are no memory access.
	Access evidence.AccessKind
	// Line is the line of the innermost frame that lies in the program itself
	// (not in libc, libstdc++, core or std), in the fixture's source. Where
	// compilers differ in it, it lies between Line and LastLine.
	Line, LastLine int
}

// At reports whether a line of the fixture's source is the expected one.
func (w Want) At(line int) bool { return line >= w.Line && line <= w.LastLine }

// wantPattern is `// WANT: kind[ access]:@LINE[+n|-n][..+n]`.
var wantPattern = regexp.MustCompile(`^([a-z-]+)(?: ([a-z/]+))?:@LINE([+-][0-9]+)?(?:\.\.([+-][0-9]+))?$`)

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

// parseWant reads the value of a WANT comment that stands on line.
func parseWant(value string, line int) (Want, error) {
	m := wantPattern.FindStringSubmatch(value)
	if m == nil {
		return Want{}, fmt.Errorf("line %d: WANT %q is not \"kind access:@LINE+n\"", line, value)
	}
	want := Want{Kind: evidence.FailureKind(m[1]), Access: evidence.AccessKind(m[2]), Line: line}
	if want.Access != "" && !want.Access.Valid() {
		return Want{}, fmt.Errorf("line %d: WANT has the unknown access %q", line, m[2])
	}
	if !knownKinds[want.Kind] {
		return Want{}, fmt.Errorf("line %d: WANT has the unknown kind %q", line, m[1])
	}
	first, err := offsetOf(m[3])
	if err != nil {
		return Want{}, fmt.Errorf("line %d: WANT %q: %w", line, value, err)
	}
	want.Line += first
	want.LastLine = want.Line
	if m[4] != "" {
		last, err := offsetOf(m[4])
		if err != nil {
			return Want{}, fmt.Errorf("line %d: WANT %q: %w", line, value, err)
		}
		want.LastLine = line + last
	}
	if want.Line < 1 || want.LastLine < want.Line {
		return Want{}, fmt.Errorf("line %d: WANT %q is no range of the file's lines", line, value)
	}
	return want, nil
}

// offsetOf reads "+n" or "-n"; an empty text is 0.
func offsetOf(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	return strconv.Atoi(text)
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
}
