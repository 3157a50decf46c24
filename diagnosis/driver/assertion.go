package driver

import (
	"bytes"
	"fmt"

	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/staticscan"
)

// assertion recovers the text of an assertion of the C++ library's headers:
// std::__glibcxx_assert_fail(file, line, function, condition) keeps it
// nowhere, but the call in the program's code has constants for arguments.
func (a *analysis) assertion(in staticscan.Input) {
	f := &a.result.Failure
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
		if text[i], ok = a.text(evidence.Addr(at)); !ok {
			return
		}
	}
	f.Message = fmt.Sprintf("%s:%d: %s: Assertion '%s' failed.", text[0], int32(line), text[1], text[2])
	f.Sentence = failure.Sentence(*f, failure.Names{Threads: len(a.process.Threads)})
}

func callsAssertion(calls []image.SymbolizedCall) bool {
	for _, c := range calls {
		if evidence.ShortName(c.Site.Function) == "std::__glibcxx_assert_fail" {
			return true
		}
	}
	return false
}

// text reads a C string of the program's constants.
func (a *analysis) text(at evidence.Addr) (string, bool) {
	const longest = 4096
	b := make([]byte, longest)
	n, _ := a.process.ReadMemory(at, b)
	end := bytes.IndexByte(b[:n], 0)
	return string(b[:max(end, 0)]), end > 0
}
