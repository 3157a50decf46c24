package object

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"slices"
	"sort"
)

// pltSections are those with stubs, in the order in which SymbolNamed prefers
// them: with -z ibtplt both .plt and .plt.sec have a stub for a function, and
// code calls the one in .plt.sec.
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
}

// linkage names stubs of procedure linkage tables, and words of the global
// offset table, by their relocations.
type linkage struct {
	stubs   []stub // in the order of pltSections
	byAddr  []int  // indexes of stubs
	slots   []slot // by address
	dynamic *symbolTable
}

func (l *symbols) findLinkage() *linkage {
	t := &linkage{dynamic: l.own().dynamic}
	// Stubs that cannot be read because of a fault have no names.
	_ = l.headers.file.guard(".plt", func() {
		for _, name := range pltSections {
			if s := l.headers.Section(name); s != nil {
				t.stubs = append(t.stubs, s.pltStubs()...)
			}
		}
		t.findSlots(l.relocations(".rela.plt"), l.relocations(".rela.dyn"))
	})
	t.byAddr = make([]int, len(t.stubs))
	for i := range t.byAddr {
		t.byAddr[i] = i
	}
	slices.SortFunc(t.byAddr, func(i, j int) int { return cmp.Compare(t.stubs[i].addr, t.stubs[j].addr) })
	return t
}

func (l *symbols) relocations(section string) []byte {
	s := l.headers.Section(section)
	if s == nil || s.Type != uint32(elf.SHT_RELA) {
		return nil
	}
	b, err := s.Data()
	if err != nil {
		return nil
	}
	return b
}

// pltStubs decodes a section of stubs, which are 16 bytes long, except in
// .plt.got without branch protection.
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

// symbol names a stub as BFD does: "read@plt", "*ABS*+0x3b0@plt".
func (t *linkage) symbol(e *stub) (Symbol, bool) {
	k, ok := t.slotAt(e.slot)
	if !ok {
		return Symbol{}, false
	}
	name, ok := t.target(k)
	return Symbol{Name: name + "@plt", Value: e.addr, Size: e.size, Kind: SymbolFunc, Synthetic: true}, ok
}

// stubAt returns the stub that covers an address.
func (t *linkage) stubAt(addr uint64) (Symbol, bool) {
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

func (t *linkage) stubNamed(name string) (Symbol, bool) {
	for i := range t.stubs {
		if s, ok := t.symbol(&t.stubs[i]); ok && s.Name == name {
			return s, true
		}
	}
	return Symbol{}, false
}
