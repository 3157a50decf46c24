package failure

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/internal/siginfo"
)

func TestFetched(t *testing.T) {
	const page = codeAt + 0x1000
	tests := []struct {
		pc, addr evidence.Addr
		inst     *x86.Inst
		want     bool
	}{
		{dataAt, dataAt, nil, true},
		{page - 1, page, nil, true},
		{page - 14, page, nil, true},
		{page - 15, page, nil, false},
		{page - 1, page, &x86.Inst{}, false},
		{page - 1, page + 4, nil, false},
		{page + 1, page, nil, false},
	}
	for _, test := range tests {
		j := newFake(nil).judge(segv(segvMapErr, test.addr), regs{image.RIP: uint64(test.pc)})
		j.cpu.inst = test.inst
		if got := j.cpu.fetched(test.addr); got != test.want {
			t.Errorf("fault at %v, pc %v, decoded %v: %v, want %v", test.addr, test.pc, test.inst != nil, got, test.want)
		}
	}
}

// Of two operands the one that covers the address is blamed. If neither covers it, none is blamed.
func TestCulprit(t *testing.T) {
	tests := []struct {
		from, to, addr evidence.Addr
		want           evidence.AccessKind
	}{
		{dataAt, dataAt + 8, dataAt + 8, evidence.Write},
		{dataAt, dataAt + 8, dataAt + 7, evidence.Read},
		{dataAt + 8, dataAt, dataAt + 8, evidence.Read},
		{dataAt + 8, dataAt, dataAt + 7, evidence.Write},
		{dataAt + 8, dataAt, dataAt + 16, ""},
		{dataAt + 8, dataAt, dataAt - 1, ""},
	}
	for _, test := range tests {
		j := newFake(moveWords).judge(segv(segvMapErr, test.addr), regs{image.RSI: uint64(test.from), image.RDI: uint64(test.to)})
		j.classify()
		var got evidence.AccessKind
		if c := j.cpu.culpritFor(test.addr); c.op != nil {
			got = c.op.Access
		}
		if got != test.want {
			t.Errorf("move from %v to %v, fault at %v: %q, want %q", test.from, test.to, test.addr, got, test.want)
		}
	}
	j := newFake(moveWords).judge(segv(segvMapErr, 4), nil)
	j.classify()
	j.thread.Registers.Forget(image.RSI)
	j.thread.Registers.Forget(image.RDI)
	j.stack.frames[0].Registers = j.thread.Registers
	if c := j.cpu.culpritFor(4); c.op != nil {
		t.Errorf("registers that are not known gave the operand %+v", c.op)
	}
}

// The vsyscall page is mapped in the kernel's half. Addresses near it are still no addresses of the
// program.
func TestWildBesideVsyscall(t *testing.T) {
	const page = 0xffffffffff600000
	f := newFake(load)
	f.addMapping(page, "--x", make([]byte, 0x1000), "[vsyscall]")
	got := f.judge(segv(segvMapErr, page+0x2008), regs{image.RAX: page + 0x2000}).classify()
	if got.Kind != evidence.WildPointer || got.Proof != evidence.Inferred {
		t.Errorf("kind %s (%s)", got.Kind, got.Proof)
	}
}

func TestFlowTarget(t *testing.T) {
	const target = 0x4242424242424242
	tests := []struct {
		name string
		code []byte
		regs regs
		want evidence.Addr
		ok   bool
	}{
		{"return", ret, regs{image.RSP: dataAt + 0x40}, target, true},
		{"return without a stack", ret, regs{image.RSP: guardAt}, 0, false},
		{"call through memory", callCell, regs{image.RAX: dataAt + 0x40}, target, true},
		{"call through what cannot be read", callCell, regs{image.RAX: guardAt}, 0, false},
		{"call through a register", callRAX, regs{image.RAX: target}, target, true},
	}
	for _, test := range tests {
		f := newFake(test.code)
		f.put64(dataAt+0x40, target)
		j := f.judge(segv(siginfo.Kernel, 0), test.regs)
		j.classify()
		if got, ok := j.cpu.flowTarget(); ok != test.ok || got != test.want {
			t.Errorf("%s: %v, %v; want %v, %v", test.name, got, ok, test.want, test.ok)
		}
	}
}
