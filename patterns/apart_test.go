package patterns

import (
	"testing"

	"diagnose/evidence"
)

// TestApart: two copies of one expression, as compilers make of a loop's condition, are two iterations. A
// function that was inlined for two calls is not.
func TestApart(t *testing.T) {
	at := func(line, column, caller int) evidence.Context {
		return evidence.Context{Site: evidence.Site{Function: "wait", File: "a.c", Line: line, Column: column}, Caller: evidence.Site{File: "a.c", Line: caller}}
	}
	for _, x := range []struct {
		name        string
		first, last evidence.Context
		firstPC, pc evidence.Addr
		kind        evidence.AccessCode // of the last
		want        bool
	}{
		{"one after the other", at(3, 9, 0), at(4, 9, 0), 0x10, 0x20, evidence.CodeRead, false},
		{"back in a loop", at(3, 9, 0), at(4, 9, 0), 0x20, 0x10, evidence.CodeRead, true},
		{"the same instruction", at(3, 9, 0), at(3, 9, 0), 0x10, 0x10, evidence.CodeRead, true},
		{"a condition and its copy", at(3, 9, 0), at(3, 9, 0), 0x10, 0x20, evidence.CodeRead, true},
		{"a modification", at(3, 9, 0), at(3, 9, 0), 0x10, 0x20, evidence.CodeWrite, false},
		{"two operands of one line", at(3, 9, 0), at(3, 13, 0), 0x10, 0x20, evidence.CodeRead, false},
		{"columns are not known", at(3, 0, 0), at(3, 0, 0), 0x10, 0x20, evidence.CodeRead, false},
		{"inlined for two calls", at(3, 9, 30), at(3, 9, 40), 0x10, 0x20, evidence.CodeRead, false},
	} {
		log := &evidence.AccessLog{Contexts: []evidence.Context{x.first, x.last}}
		if got := apart(log, &evidence.Access{PC: x.firstPC, Kind: evidence.CodeRead}, &evidence.Access{PC: x.pc, Context: 1, Kind: x.kind}); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}
