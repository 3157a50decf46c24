package signature_test

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/evidence/signature"
)

// The same function fails in two builds of a program: its address and its line differ, the
// signature does not.
func ExampleOf() {
	failure := func(pc evidence.Addr, line int) *evidence.Case {
		site := evidence.Site{PC: pc, Module: "/bin/server", Function: "parse", File: "parse.c", Line: line}
		return &evidence.Case{
			Failure: evidence.Failure{Kind: evidence.NullPointer},
			Stacks:  []evidence.ThreadGroup{{Failing: true, Stack: evidence.Stack{Frames: []evidence.Frame{{Kind: evidence.Physical, Site: site}}}}},
		}
	}
	one, other := signature.Of(failure(0x401136, 12)), signature.Of(failure(0x55d0c0de1200, 19))
	fmt.Println(one.Stack == other.Stack, one.Stack != "")
	// Output: true true
}
