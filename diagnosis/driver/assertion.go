package driver

import (
	"bytes"
	"fmt"

	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/staticscan"
)

// addAssertion adds the text of an assertion of the C++ library's headers to a failure without a
// text. std::__glibcxx_assert_fail(file, line, function, condition) does not store it, but the call
// in the program's code has constant arguments.
func addAssertion(f *evidence.Failure, in staticscan.Input) {
	if f.Kind != evidence.AssertionFailure || f.Message != "" {
		return
	}
	call := 1
	for call < len(in.Frames) && !callsAssertion(in.Frames[call-1].Calls) {
		call++
	}
	line, ok := staticscan.CallArgument(in, call, 1)
	if !ok {
		return
	}
	var text [3]string
	for i, argument := range []int{0, 2, 3} {
		at, ok := staticscan.CallArgument(in, call, argument)
		if !ok {
			return
		}
		if text[i], ok = constantText(in.Process, evidence.Addr(at)); !ok {
			return
		}
	}
	f.Condition = text[2]
	f.Message = fmt.Sprintf("%s:%d: %s: Assertion '%s' failed.", text[0], int32(line), text[1], text[2])
	failure.Describe(f, failure.Names{Threads: len(in.Process.Threads)})
}

// addCheck adds the comparison that led to the call by which the program ended itself.
func addCheck(f *evidence.Failure, in staticscan.Input) {
	switch f.Kind {
	case evidence.AssertionFailure, evidence.Abort, evidence.CxxTerminate, evidence.RustPanic:
	default:
		return
	}
	if check, ok := staticscan.Checked(in, staticscan.OwnFrame(in)); ok {
		f.Check = &check
	}
}

func callsAssertion(calls []image.SymbolizedCall) bool {
	for _, c := range calls {
		if evidence.ShortName(c.Site.Function) == "std::__glibcxx_assert_fail" {
			return true
		}
	}
	return false
}

// constantText reads a C string from the program's constants.
func constantText(p *image.Process, at evidence.Addr) (string, bool) {
	const longest = 4096
	b := make([]byte, longest)
	n, _ := p.ReadMemory(at, b)
	end := bytes.IndexByte(b[:n], 0)
	return string(b[:max(end, 0)]), end > 0
}
