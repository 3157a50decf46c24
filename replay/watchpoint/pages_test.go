package watchpoint

import (
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

func testPages(watches ...tracee.Watch) *pages {
	p := &pages{tr: &Tracing{watches: watches, process: &tracee.Process{Started: true}}}
	for _, w := range watches {
		p.list = append(p.list, &page{start: uint64(w.Addr) &^ (tracee.PageSize - 1)})
	}
	return p
}

func TestPagesAbout(t *testing.T) {
	p := testPages(tracee.Watch{Addr: 0x2000, Size: 8}, tracee.Watch{Addr: 0x2ff8, Size: 4})
	for name, c := range map[string]struct {
		code  []byte
		regs  ptrace.Registers
		near  bool
		kinds [tracee.DebugRegisters]evidence.AccessCode
	}{
		"another page":           {[]byte{0x48, 0x8b, 0x00}, ptrace.Registers{Rax: 0x1ff8}, false, [4]evidence.AccessCode{}},
		"from the page before":   {[]byte{0x48, 0x8b, 0x00}, ptrace.Registers{Rax: 0x1ff9}, true, [4]evidence.AccessCode{evidence.CodeRead}},
		"beside":                 {[]byte{0x48, 0x89, 0x00}, ptrace.Registers{Rax: 0x2008}, true, [4]evidence.AccessCode{}},
		"a part":                 {[]byte{0x48, 0x89, 0x00}, ptrace.Registers{Rax: 0x2007}, true, [4]evidence.AccessCode{evidence.CodeWrite}},
		"the slot of a push":     {[]byte{0x50}, ptrace.Registers{Rsp: 0x2008}, true, [4]evidence.AccessCode{evidence.CodeWrite}},
		"a read and a write":     {[]byte{0x48, 0xa5}, ptrace.Registers{Rsi: 0x2ff8, Rdi: 0x2000}, true, [4]evidence.AccessCode{evidence.CodeWrite, evidence.CodeRead}},
		"no repetition is left":  {[]byte{0xf3, 0xa4}, ptrace.Registers{Rsi: 0x2ff8, Rdi: 0x2000}, false, [4]evidence.AccessCode{}},
		"the next repetition":    {[]byte{0xf3, 0xa4}, ptrace.Registers{Rsi: 0x5000, Rdi: 0x2000, Rcx: 9}, true, [4]evidence.AccessCode{evidence.CodeWrite}},
		"an address that is not": {[]byte{0x48, 0x8d, 0x00}, ptrace.Registers{Rax: 0x2000}, false, [4]evidence.AccessCode{}},
	} {
		inst, err := x86.Decode(c.code, 0x400000)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if a := p.about(&inst, &c.regs); a.near != c.near || a.kinds != c.kinds || a.unknown {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestPagesTouchedByCalls(t *testing.T) {
	p := testPages(tracee.Watch{Addr: 0x2010, Size: 8})
	for name, c := range map[string]struct {
		call ptrace.Call
		want bool
	}{
		"a buffer up to it":        {ptrace.Call{Number: unix.SYS_READ, Args: [6]uint64{0, 0x1000, 0x1000}}, false},
		"a buffer into it":         {ptrace.Call{Number: unix.SYS_READ, Args: [6]uint64{0, 0x1000, 0x1001}}, true},
		"a buffer past the end":    {ptrace.Call{Number: unix.SYS_WRITE, Args: [6]uint64{0, 0x1000, ^uint64(0)}}, true},
		"the engine's own word":    {ptrace.Call{Number: unix.SYS_FUTEX, Args: [6]uint64{0x21a000000000}}, false},
		"a futex":                  {ptrace.Call{Number: unix.SYS_FUTEX, Args: [6]uint64{0x2ffc}}, true},
		"a time-out":               {ptrace.Call{Number: unix.SYS_FUTEX, Args: [6]uint64{0x21a000000000, 0, 0, 0x2000}}, true},
		"a mapping anywhere":       {ptrace.Call{Number: unix.SYS_MMAP, Args: [6]uint64{0x2000, 0x1000}}, false},
		"a mapping over it":        {ptrace.Call{Number: unix.SYS_MMAP, Args: [6]uint64{0x1000, 0x9000, 0, unix.MAP_FIXED}}, true},
		"a call that is not known": {ptrace.Call{Number: unix.SYS_UNAME, Args: [6]uint64{0x5000}}, true},
	} {
		if got := p.touches(nil, &c.call, nil); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
