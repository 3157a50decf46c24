package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"sort"
)

// pltSections are those with stubs, in the order in which SymbolNamed prefers
// them: with -z ibtplt both .plt and .plt.sec have a stub for a function, and
// it is the one in .plt.sec that is called.
var pltSections = []string{".plt.sec", ".plt.bnd", ".plt.got", ".plt"}

// maxStubs bounds the stubs of one section.
const maxStubs = 1 << 18

// stub is one entry of a procedure linkage table.
type stub struct {
	addr, size uint64
	// slot is the address of the word of the global offset table that the
	// stub jumps through; or, if pushes, order is the index in .rela.plt of the
	// relocation that it pushes for the dynamic linker.
	slot   uint64
	order  uint64
	pushes bool

	resolved bool
	symbol   uint32
	addend   uint64
}

// stubTable names the stubs of procedure linkage tables by their relocations.
type stubTable struct {
	stubs   []stub // in the order of pltSections
	byAddr  []int  // indexes of resolved stubs
	dynamic *symbolTable
}

func (f *File) findStubs() *stubTable {
	t := &stubTable{dynamic: f.own().dynamic}
	f.guard(".plt", func() {
		for _, name := range pltSections {
			if s := f.Section(name); s != nil {
				t.stubs = append(t.stubs, s.pltStubs()...)
			}
		}
		t.resolve(f)
	})
	for i := range t.stubs {
		if t.stubs[i].resolved {
			t.byAddr = append(t.byAddr, i)
		}
	}
	sort.Slice(t.byAddr, func(i, j int) bool { return t.stubs[t.byAddr[i]].addr < t.stubs[t.byAddr[j]].addr })
	return t
}

// pltStubs decodes a section of stubs, which are 16 bytes long but for those
// of .plt.got without branch protection.
func (s *Section) pltStubs() []stub {
	code, err := s.Data()
	if err != nil {
		return nil
	}
	size := uint64(16)
	if s.entrySize == 8 {
		size = 8
	}
	var stubs []stub
	for at := uint64(0); at+size <= uint64(len(code)) && len(stubs) < maxStubs; at += size {
		e := stub{addr: s.Addr + at, size: size}
		if e.decode(code[at : at+size]) {
			stubs = append(stubs, e)
		}
	}
	return stubs
}

var (
	endbr64  = []byte{0xf3, 0x0f, 0x1e, 0xfa}
	jmpSlot  = []byte{0xff, 0x25} // jmp *disp32(%rip)
	movIndex = []byte{0x41, 0xbb} // mov $imm32,%r11d (mold)
)

// decode recognises the stubs of the psABI and of GNU ld, gold, lld and mold.
// The first entry of .plt is none: it starts with a push of the link map.
func (e *stub) decode(code []byte) bool {
	b := bytes.TrimPrefix(code, endbr64)
	if bytes.HasPrefix(b, movIndex) && len(b) > 6 {
		b = b[6:]
	}
	if len(b) > 0 && b[0] == 0xf2 { // bnd
		b = b[1:]
	}
	if bytes.HasPrefix(b, jmpSlot) && len(b) >= 6 {
		next := e.addr + uint64(len(code)-len(b)+6)
		e.slot = next + uint64(int64(int32(binary.LittleEndian.Uint32(b[2:]))))
		return true
	}
	if len(b) >= 5 && b[0] == 0x68 { // push $imm32
		e.order, e.pushes = uint64(binary.LittleEndian.Uint32(b[1:])), true
		return true
	}
	return false
}

// resolve finds each stub's relocation: that of its slot, or the one whose
// index it pushes.
func (t *stubTable) resolve(f *File) {
	slots := make(map[uint64][]int)
	for i := range t.stubs {
		if !t.stubs[i].pushes {
			slots[t.stubs[i].slot] = append(slots[t.stubs[i].slot], i)
		}
	}
	plt := f.relocations(".rela.plt")
	for i := range t.stubs {
		e := &t.stubs[i]
		if n := uint64(len(plt) / relaSize); e.pushes && e.order < n {
			e.relocate(plt[e.order*relaSize:])
		}
	}
	for _, table := range [][]byte{plt, f.relocations(".rela.dyn")} {
		for ; len(table) >= relaSize && len(slots) > 0; table = table[relaSize:] {
			// r_info first: most of .rela.dyn are R_X86_64_RELATIVE.
			if !jumpRelocation(table) {
				continue
			}
			slot := binary.LittleEndian.Uint64(table)
			for _, i := range slots[slot] {
				t.stubs[i].relocate(table)
			}
			delete(slots, slot)
		}
	}
}

func (f *File) relocations(section string) []byte {
	s := f.Section(section)
	if s == nil || s.Type != uint32(elf.SHT_RELA) {
		return nil
	}
	b, err := s.Data()
	if err != nil {
		return nil
	}
	return b
}

// slotSymbol names the word of the global offset table at addr by the
// relocation that fills it: "read@got.plt" (gdb's name) where a stub jumps
// through it, "environ@got" where code reads it.
func (f *File) slotSymbol(addr uint64) (Symbol, bool) {
	t := f.stubs()
	for _, k := range []struct{ section, suffix string }{{".rela.plt", "@got.plt"}, {".rela.dyn", "@got"}} {
		table := f.relocations(k.section)
		for ; len(table) >= relaSize; table = table[relaSize:] {
			slot := binary.LittleEndian.Uint64(table)
			if addr < slot || addr-slot >= 8 || !jumpRelocation(table) {
				continue
			}
			e := stub{}
			e.relocate(table)
			if name, ok := t.target(&e); ok {
				return Symbol{Name: name + k.suffix, Value: slot, Size: 8, Kind: SymbolObject, Synthetic: true}, true
			}
		}
	}
	return Symbol{}, false
}

func jumpRelocation(rela []byte) bool {
	switch elf.R_X86_64(binary.LittleEndian.Uint32(rela[8:])) {
	case elf.R_X86_64_JMP_SLOT, elf.R_X86_64_GLOB_DAT, elf.R_X86_64_IRELATIVE:
		return true
	}
	return false
}

func (e *stub) relocate(rela []byte) {
	if !jumpRelocation(rela) {
		return
	}
	e.symbol = binary.LittleEndian.Uint32(rela[12:])
	e.addend = binary.LittleEndian.Uint64(rela[16:])
	e.resolved = true
}

// target names what a relocation refers to as BFD does (bfd/elfxx-x86.c,
// _bfd_x86_elf_get_synthetic_symtab): "read", "*ABS*+0x3b0".
func (t *stubTable) target(e *stub) (string, bool) {
	name := "*ABS*"
	if e.symbol != 0 {
		if t.dynamic == nil || uint64(e.symbol) >= uint64(t.dynamic.count()) {
			return "", false
		}
		s := t.dynamic.at(int(e.symbol))
		if name = string(t.dynamic.rawName(&s)); name == "" {
			return "", false
		}
	}
	if e.addend != 0 {
		name += fmt.Sprintf("+%#x", e.addend)
	}
	return name, true
}

func (t *stubTable) symbol(e *stub) (Symbol, bool) {
	name, ok := t.target(e)
	return Symbol{Name: name + "@plt", Value: e.addr, Size: e.size, Kind: SymbolFunc, Synthetic: true}, ok
}

func (t *stubTable) at(addr uint64) (Symbol, bool) {
	i := sort.Search(len(t.byAddr), func(i int) bool { return t.stubs[t.byAddr[i]].addr > addr }) - 1
	if i < 0 {
		return Symbol{}, false
	}
	e := &t.stubs[t.byAddr[i]]
	if addr-e.addr >= e.size {
		return Symbol{}, false
	}
	return t.symbol(e)
}

func (t *stubTable) named(name string) (Symbol, bool) {
	for i := range t.stubs {
		if !t.stubs[i].resolved {
			continue
		}
		if s, ok := t.symbol(&t.stubs[i]); ok && s.Name == name {
			return s, true
		}
	}
	return Symbol{}, false
}
