package unwind

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"diagnose/evidence"
	"diagnose/image"
)

// way is one way to step out of a frame: a row and its source.
type way struct {
	row    row
	trust  evidence.Trust
	source string // for errors
	// switches says that the caller may be on any other stack.
	switches bool
}

// place is what the unwinder knows about a pc, for any thread.
type place struct {
	// ways are tried in order. A row of CFI is trusted; the others must lead to
	// a plausible caller.
	ways []way
	// signal says that the pc is in the trampoline to which a signal handler
	// returns.
	signal bool
	// stopped says why no frame can be further out, "" if one can.
	stopped string
	// injected says that the return address is an interrupted instruction.
	injected bool
	// otherStack says why the caller is not on this stack, "" if it is. The
	// stack is then not scanned.
	otherStack string
	// problem is why there is no row of CFI, nil when no table covers the pc.
	problem error
}

type placeKey struct {
	pc     evidence.Addr
	lookup image.Lookup
}

// maxPlaces bounds the places that are kept: even a stack of a million frames
// has few different pcs, unless it is hostile.
const maxPlaces = 1 << 14

type placeCache struct {
	mutex sync.RWMutex
	known map[placeKey]*place
}

// place returns the place of the frame's pc, cached.
func (u *Unwinder) place(f *Frame) *place {
	key := placeKey{f.PC(), f.Lookup}
	u.places.mutex.RLock()
	p := u.places.known[key]
	u.places.mutex.RUnlock()
	if p != nil {
		return p
	}
	p = u.findPlace(f)
	u.places.mutex.Lock()
	defer u.places.mutex.Unlock()
	if u.places.known == nil || len(u.places.known) >= maxPlaces {
		u.places.known = map[placeKey]*place{}
	}
	u.places.known[key] = p
	return p
}

func (u *Unwinder) findPlace(f *Frame) *place {
	pc := f.PC()
	module := u.process.ModuleAt(pc)
	if !u.executable(pc, module) {
		return badPlace(f)
	}
	p := &place{}
	trampoline := u.isSigreturn(pc)
	p.addTable(u, f, module, trampoline)
	if !trampoline && p.addGo(f, module) {
		return p
	}
	switch {
	case trampoline:
		p.signal = true
		p.ways = append(p.ways, way{row: sigreturnRow(), trust: evidence.TrustContext, source: "signal frame"})
		return p
	case p.signal:
		return p
	}
	if len(p.ways) == 0 && u.startsStack(f.LookupPC()) {
		p.ways = append(p.ways, way{row: row{outermost: true}, source: "start of the program or of a thread"})
		return p
	}
	if isPLT(module, f.LookupPC()) {
		p.ways = append(p.ways, way{row: returnRow(8), trust: evidence.TrustPrologue, source: "procedure linkage table"})
	}
	if r, ok := u.prologue(f.LookupPC(), f.Lookup); ok {
		p.ways = append(p.ways, way{row: r, trust: evidence.TrustPrologue, source: "prologue"})
	}
	p.ways = append(p.ways, way{row: framePointerRow(), trust: evidence.TrustFramePointer, source: "frame pointer"})
	return p
}

// addTable adds the row of the call frame table, if there is one.
func (p *place) addTable(u *Unwinder, f *Frame, module *image.Module, trampoline bool) {
	if module == nil {
		return
	}
	pc := f.LookupPC()
	if trampoline {
		// glibc's table begins one byte before the trampoline for unwinders
		// that look up pc - 1; other libraries' do not.
		pc = f.PC()
	}
	r, ok, err := u.modules.of(u.process, module).row(pc)
	p.problem = err
	if !ok || trampoline && !r.signal {
		return
	}
	p.signal = r.signal
	p.ways = append(p.ways, way{row: r, trust: evidence.TrustCFI, source: "call frame information"})
}

// executable reports whether code can run at pc, according to the mappings. A
// core may lack the permissions of a file's mapping.
func (u *Unwinder) executable(pc evidence.Addr, module *image.Module) bool {
	m := u.process.MappingAt(pc)
	if m == nil || strings.HasPrefix(m.Perms, "?") {
		return module != nil
	}
	return m.Executable()
}

// badPlace is a pc where no code can be. A thread that stopped there jumped or
// called through a bad pointer. If it was a call, the return address is at the
// stack pointer.
func badPlace(f *Frame) *place {
	if f.Lookup == image.ReturnAddress {
		return &place{stopped: fmt.Sprintf("the return address %v is not in executable memory", f.PC())}
	}
	return &place{ways: []way{{row: returnRow(8), trust: evidence.TrustPrologue, source: "call of a bad address"}}}
}

// startsStack reports whether a pc is in the function that the kernel starts, or in the one that a new thread returns to from clone(2).
// musl has no call frame information for them, which would end the stack.
func (u *Unwinder) startsStack(pc evidence.Addr) bool {
	const longest = 64 // bytes of a program's first function
	s, ok := u.process.SymbolAt(pc)
	switch {
	case ok && (s.Name == "__clone" || s.Name == "clone"):
		return true
	case u.entry == 0:
		return false
	case ok:
		return s.Addr == u.entry
	}
	return pc >= u.entry && pc < u.entry+longest
}

// sigreturnCode is mov $SYS_rt_sigreturn, %rax; syscall, which every libc's
// trampoline consists of; debuggers rely on these bytes.
var sigreturnCode = []byte{0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05}

func (u *Unwinder) isSigreturn(pc evidence.Addr) bool {
	var code [9]byte
	_, err := u.process.ReadMemory(pc, code[:])
	return err == nil && bytes.Equal(code[:], sigreturnCode)
}

// sigreturnRow is the row of a signal trampoline without call frame
// information: the stack pointer is at struct ucontext, in which the general
// registers begin at offset 40 (Linux arch/x86/include/uapi/asm/sigcontext.h).
func sigreturnRow() row {
	const gregs = 40
	order := []image.Register{image.R8, image.R9, image.R10, image.R11, image.R12, image.R13, image.R14, image.R15,
		image.RDI, image.RSI, image.RBP, image.RBX, image.RDX, image.RAX, image.RCX, image.RSP, image.RIP}
	const opBreg7, opDeref = 0x77, 0x06
	saved := func(i int) []byte {
		p := program{out: []byte{opBreg7}}
		p.sleb(int64(gregs + 8*i))
		return p.out
	}
	r := row{signal: true, ra: image.RIP}
	for i, n := range order {
		r.rules = append(r.rules, rule{of: n, kind: ruleExpression, expr: saved(i)})
		if n == image.RSP {
			r.cfa = rule{kind: ruleValExpression, expr: append(saved(i), opDeref)}
		}
	}
	return r
}

// isPLT reports whether pc is in a procedure linkage table, whose stubs have
// pushed nothing, except the first one.
func isPLT(module *image.Module, pc evidence.Addr) bool {
	if module == nil || module.Object == nil {
		return false
	}
	s := module.Object.SectionAt(module.LinkAddr(pc))
	return s != nil && (s.Name == ".plt" || strings.HasPrefix(s.Name, ".plt."))
}
