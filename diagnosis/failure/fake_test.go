package failure

import (
	"encoding/binary"
	"sort"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/internal/siginfo"

	"golang.org/x/sys/unix"
)

// fake is a process made of a few regions of memory.
type fake struct {
	mappings []image.Mapping
	bytes    map[evidence.Addr][]byte // by the mapping's start
	symbols  []image.Symbol
	module   *image.Module
	tls      evidence.Addr
}

func (f *fake) addMapping(start evidence.Addr, perms string, content []byte, path string) {
	end := start + evidence.Addr(len(content))
	f.mappings = append(f.mappings, image.Mapping{Start: start, End: end, Perms: perms, Path: path})
	sort.Slice(f.mappings, func(i, j int) bool { return f.mappings[i].Start < f.mappings[j].Start })
	if f.bytes == nil {
		f.bytes = map[evidence.Addr][]byte{}
	}
	f.bytes[start] = content
}

func (f *fake) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	m := f.MappingAt(addr)
	if m == nil || !m.Readable() {
		return 0, &image.MemoryError{Addr: addr, Reason: "is not mapped", Unmapped: true}
	}
	n := copy(p, f.bytes[m.Start][addr-m.Start:])
	if n < len(p) {
		return n, &image.MemoryError{Addr: m.End, Reason: "is not mapped", Unmapped: true}
	}
	return n, nil
}

func (f *fake) MappingAt(addr evidence.Addr) *image.Mapping {
	for i := range f.mappings {
		if f.mappings[i].Contains(addr) {
			return &f.mappings[i]
		}
	}
	return nil
}

func (f *fake) ModuleAt(addr evidence.Addr) *image.Module {
	if m := f.MappingAt(addr); m != nil && m.Executable() {
		return f.module
	}
	return nil
}

func (f *fake) Place(addr evidence.Addr) evidence.Place {
	return evidence.Place{Addr: addr, Class: evidence.PlaceUnmapped, Text: "somewhere", Proof: evidence.FromCore}
}

func (f *fake) SymbolAt(addr evidence.Addr) (image.Symbol, bool) {
	for _, s := range f.symbols {
		if addr >= s.Addr && uint64(addr-s.Addr) < s.Size {
			return s, true
		}
	}
	return image.Symbol{}, false
}

func (f *fake) SymbolNamed(name string) (image.Symbol, bool) {
	for _, s := range f.symbols {
		if s.Name == name {
			return s, true
		}
	}
	return image.Symbol{}, false
}

func (f *fake) ThreadLocal(*image.Thread, *image.Module) (evidence.Addr, error) {
	if f.tls == 0 {
		return 0, &image.MemoryError{Reason: "is not known"}
	}
	return f.tls, nil
}

// fakePID is the number of the fake process.
const fakePID = 100

// Where the parts of the fake process lie.
const (
	codeAt  = 0x555555555000
	dataAt  = 0x555555558000
	constAt = 0x555555557000
	guardAt = 0x7ffff7c00000
	stackAt = 0x7ffff7c01000
	textAt  = 0x7ffff7e00000
	maybeAt = 0x7ffff7f00000
)

// newFake has a page of code that begins with the instruction, one of data,
// one of constants, and a stack of two pages above a guard.
func newFake(code []byte) *fake {
	f := &fake{module: &image.Module{Path: "/bin/program", Start: codeAt, End: dataAt + 0x1000}}
	text := make([]byte, 0x1000)
	copy(text, code)
	// An indirect call whose return address is codeAt+0x105.
	copy(text[0x103:], []byte{0xff, 0xd0})
	f.addMapping(codeAt, "r-x", text, "/bin/program")
	f.addMapping(constAt, "r--", make([]byte, 0x1000), "/bin/program")
	f.addMapping(dataAt, "rw-", make([]byte, 0x1000), "/bin/program")
	f.addMapping(guardAt, "---", make([]byte, 0x1000), "")
	f.addMapping(stackAt, "rw-", make([]byte, 0x2000), "")
	f.addMapping(maybeAt, "?--", make([]byte, 0x1000), "")
	return f
}

func (f *fake) put64(addr evidence.Addr, v uint64) {
	m := f.MappingAt(addr)
	binary.LittleEndian.PutUint64(f.bytes[m.Start][addr-m.Start:], v)
}

func (f *fake) put(addr evidence.Addr, b []byte) {
	m := f.MappingAt(addr)
	copy(f.bytes[m.Start][addr-m.Start:], b)
}

// judge stops the fake at its first instruction.
func (f *fake) judge(sig evidence.Signal, set map[image.Register]uint64) *judge {
	t := &image.Thread{Ref: evidence.ThreadRef{Number: 1, TID: 100}, Signal: &sig}
	for r := image.RAX; r <= image.RIP; r++ {
		t.Registers.Set(r, 0)
	}
	t.Registers.OrigRAX = -1
	t.Registers.Set(image.RSP, stackAt+0x1800)
	t.Registers.Set(image.RIP, codeAt)
	for r, v := range set {
		t.Registers.Set(r, v)
	}
	frame := func(pc, cfa evidence.Addr, how image.Lookup, name string) unwind.Frame {
		fr := unwind.Frame{Kind: evidence.Physical, Trust: evidence.TrustCFI, Registers: t.Registers, CFA: cfa, Lookup: how}
		fr.Registers.Set(image.RIP, uint64(pc))
		site := evidence.Site{PC: pc, Module: "/bin/program", Function: name}
		if pc < codeAt || pc > codeAt+0x1000 {
			site.Module, site.Function = "", ""
		}
		fr.Calls = []image.SymbolizedCall{{Site: site}}
		return fr
	}
	pc := t.Registers.PC()
	p := &process{target: f, mappings: f.mappings, pid: fakePID}
	stack := &callStack{process: p, thread: t, frames: []unwind.Frame{
		frame(pc, stackAt+0x1900, image.AtInstruction, "work"),
		frame(codeAt+0x105, stackAt+0x1a00, image.ReturnAddress, "main"),
	}}
	j := judgeOf(p, stack, Input{})
	j.cpu = newProcessor(p, stack.registers())
	return j
}

func segv(code int, addr evidence.Addr) evidence.Signal {
	return evidence.Signal{Number: int(unix.SIGSEGV), Code: code, Addr: addr, HasAddr: code != siginfo.Kernel}
}
