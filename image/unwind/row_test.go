package unwind

import (
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
)

const fakeStack = 0x7ff000000000

// TestApply: a register that cannot be read is not known in the caller, and
// without the return address or the stack pointer there is no caller.
func TestApply(t *testing.T) {
	const far = 1 << 30
	at := rule{of: image.RIP, kind: ruleOffset, offset: -8}
	tests := []struct {
		name  string
		rules []rule
		rbx   uint64
		known bool
		fails string
	}{
		{"kept", []rule{at}, 9, true, ""},
		{"in memory", []rule{at, {of: image.RBX, kind: ruleOffset, offset: -16}}, 0xa, true, ""},
		{"in memory that cannot be read", []rule{at, {of: image.RBX, kind: ruleOffset, offset: far}}, 0, false, ""},
		{"an offset", []rule{at, {of: image.RBX, kind: ruleValOffset, offset: -24}}, fakeStack - 8, true, ""},
		{"in a register", []rule{at, {of: image.RBX, kind: ruleRegister, reg: image.RSP, offset: 4}}, fakeStack + 4, true, ""},
		{"in a register that is not known", []rule{at, {of: image.RBX, kind: ruleRegister, reg: image.R12}}, 0, false, ""},
		{"at an expression", []rule{at, {of: image.RBX, kind: ruleExpression, expr: []byte{0x77, 16}}}, 0xc, true, ""},
		{"an expression", []rule{at, {of: image.RBX, kind: ruleValExpression, expr: []byte{0x77, 16}}}, fakeStack + 16, true, ""},
		{"undefined", []rule{at, {of: image.RBX, kind: ruleUndefined}}, 0, false, ""},
		{"no return address", nil, 0, false, "the return address is not known"},
		{"return address that cannot be read", []rule{{of: image.RIP, kind: ruleOffset, offset: far}}, 0, false, "the return address: "},
		{"stack pointer that cannot be read", []rule{at, {of: image.RSP, kind: ruleOffset, offset: far}}, 0, false, "the caller's stack pointer: "},
	}
	for _, test := range tests {
		var regs image.Registers
		regs.Set(image.RSP, fakeStack)
		regs.Set(image.RBX, 9)
		regs.Set(image.RAX, 1)
		r := row{cfa: rule{kind: ruleRegister, reg: image.RSP, offset: 16}, rules: test.rules, ra: image.RIP}
		caller, cfa, err := r.apply(&regs, &stackReader{memory: newFake(nil, words(0xa, 0xb, 0xc))})
		if test.fails != "" {
			if err == nil || !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s: error %v, want %q", test.name, err, test.fails)
			}
			continue
		}
		if err != nil || cfa != fakeStack+16 || caller.PC() != 0xb || caller.SP() != cfa {
			t.Errorf("%s: pc %v, sp %v, CFA %v, error %v", test.name, caller.PC(), caller.SP(), cfa, err)
		}
		if v, known := caller.Get(image.RBX); known != test.known || v != test.rbx && known {
			t.Errorf("%s: rbx %#x, known %v; want %#x, %v", test.name, v, known, test.rbx, test.known)
		}
		if v, known := caller.Get(image.RAX); known {
			t.Errorf("%s: rax, which a callee may change, is %#x in the caller", test.name, v)
		}
	}
}

// callerAt is a step to a caller with a stack pointer.
func callerAt(sp uint64, trust evidence.Trust) *step {
	s := &step{trust: trust}
	s.caller.Set(image.RSP, sp)
	s.caller.Set(image.RIP, 0x400005)
	return s
}

// TestStackSwitches: only tables may lead to another stack at a lower address,
// and only a bounded number of times.
func TestStackSwitches(t *testing.T) {
	const other = 0x500000000000
	fake := newFake(callCode(8), words(1, 2, 3, 4))
	fake.maps = append(fake.maps, image.Mapping{Start: other, End: other + 0x1000, Perms: "rw-"})
	start := func(kind evidence.FrameKind) *walk {
		w := &walk{unwinder: &Unwinder{process: fake}}
		w.frame.Kind = kind
		w.frame.Registers.Set(image.RSP, fakeStack+8)
		return w
	}
	tests := []struct {
		name  string
		to    uint64
		trust evidence.Trust
		kind  evidence.FrameKind
		ok    bool
	}{
		{"outward", fakeStack + 16, evidence.TrustScan, evidence.Physical, true},
		{"equal", fakeStack + 8, evidence.TrustCFI, evidence.Physical, false},
		{"inward", fakeStack, evidence.TrustCFI, evidence.Physical, false},
		{"other stack by tables", other, evidence.TrustCFI, evidence.Physical, true},
		{"other stack by a guess", other, evidence.TrustFramePointer, evidence.Physical, false},
		{"nowhere", 0x1000, evidence.TrustCFI, evidence.Physical, false},
		{"interrupted elsewhere", other, evidence.TrustCFI, evidence.SignalFrame, true},
	}
	for _, test := range tests {
		if reason := start(test.kind).checkGrowth(callerAt(test.to, test.trust)); (reason == "") != test.ok {
			t.Errorf("%s: %q, want ok %v", test.name, reason, test.ok)
		}
	}
	for _, kind := range []evidence.FrameKind{evidence.Physical, evidence.SignalFrame} {
		w := start(kind)
		n := 0
		for n <= 2*maxStackSwitches && w.checkGrowth(callerAt(other, evidence.TrustCFI)) == "" {
			n++
		}
		if n != maxStackSwitches {
			t.Errorf("%s frames change stacks %d times, want %d", kind, n, maxStackSwitches)
		}
	}
}

// TestInterruptedLookup: the pc that a signal interrupted is no return address.
func TestInterruptedLookup(t *testing.T) {
	for kind, want := range map[evidence.FrameKind]image.Lookup{evidence.Physical: image.ReturnAddress, evidence.SignalFrame: image.AtInstruction} {
		w := &walk{unwinder: &Unwinder{process: newFake(callCode(8), words(1, 2))}}
		w.frame.Kind = kind
		w.frame.Registers.Set(image.RSP, fakeStack)
		if reason := w.advance(callerAt(fakeStack+8, evidence.TrustCFI)); reason != "" || w.frame.Lookup != want {
			t.Errorf("caller of a %s frame: lookup %v, %q; want %v", kind, w.frame.Lookup, reason, want)
		}
	}
}

// TestPlausible rejects guesses that no call can have made.
func TestPlausible(t *testing.T) {
	code := []byte("\xe8\x00\x00\x00\x00\x90\x90\x90\x90\x90\xff\xd0\x90\x90\x90\x90")
	fake := newFake(code, append(words(1, 2, 3), "\x90\x90\x90\x90\x90\xff\xd0\x90"...))
	const below = 0x7fe000000000
	fake.maps = append(fake.maps, image.Mapping{Start: below, End: below + 0x1000, Perms: "rw-"})
	tests := []struct {
		name string
		pc   evidence.Addr
		sp   uint64
		cfa  evidence.Addr
		ok   bool
	}{
		{"after a call", 0x40000c, fakeStack, fakeStack + 16, true},
		{"after no call", 0x40000b, fakeStack, fakeStack + 16, false},
		{"call in data", fakeStack + 31, fakeStack, fakeStack + 16, false},
		{"not aligned", 0x40000c, fakeStack, fakeStack + 12, false},
		{"not above", 0x40000c, fakeStack + 16, fakeStack + 16, false},
		{"other stack", 0x40000c, below + 8, fakeStack + 16, false},
	}
	for _, test := range tests {
		w := &walk{unwinder: &Unwinder{process: fake}}
		w.frame.Registers.Set(image.RSP, test.sp)
		var caller image.Registers
		caller.Set(image.RIP, uint64(test.pc))
		if err := w.plausible(&caller, test.cfa, &way{}); (err == nil) != test.ok {
			t.Errorf("%s: %v, want ok %v", test.name, err, test.ok)
		}
	}
}

// TestScanBegins at the first whole word above the stack pointer, and keeps a
// frame pointer only if it points further out.
func TestScanBegins(t *testing.T) {
	code := []byte("\x90\x90\x90\x90\x90\xff\xd0\x90")
	for rbp, known := range map[uint64]bool{fakeStack + 64: true, fakeStack + 8: false} {
		w := &walk{unwinder: &Unwinder{process: newFake(code, words(0x400007, 0x400003, 0x400007, 0))}}
		w.stack = stackReader{memory: w.unwinder.process}
		w.frame.Registers.Set(image.RSP, fakeStack+4)
		w.frame.Registers.Set(image.RBP, rbp)
		s := w.scan(nil)
		if s.stopped != "" || s.trust != evidence.TrustScan || w.frame.CFA != fakeStack+24 {
			t.Errorf("%+v, CFA %v", s, w.frame.CFA)
		}
		if _, ok := s.caller.Get(image.RBP); ok != known {
			t.Errorf("frame pointer %#x is kept: %v, want %v", rbp, ok, known)
		}
	}
}
