package object

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
)

// slotSize is the size of a word of the global offset table.
const slotSize = 8

// slot is a word of the global offset table that a relocation fills with the
// address of a symbol.
type slot struct {
	addr   uint64
	symbol uint32 // in .dynsym; 0 for an IRELATIVE, whose addend is the resolver
	addend uint64
	called bool // it is in .rela.plt: stubs jump through it
}

// findSlots reads the relocations of .rela.plt and .rela.dyn. To a stub that pushes an index it assigns
// the word that the relocation of that index fills.
func (t *linkage) findSlots(plt, dyn []byte) {
	t.addSlots(plt, true)
	t.addSlots(dyn, false)
	slices.SortStableFunc(t.slots, func(a, b slot) int { return cmp.Compare(a.addr, b.addr) })
	for i := range t.stubs {
		e := &t.stubs[i]
		if n := uint64(len(plt) / relaSize); e.pushes && e.order < n {
			e.slot = binary.LittleEndian.Uint64(plt[e.order*relaSize:])
		}
	}
}

func (t *linkage) addSlots(table []byte, called bool) {
	for ; len(table) >= relaSize; table = table[relaSize:] {
		switch elf.R_X86_64(binary.LittleEndian.Uint32(table[8:])) {
		case elf.R_X86_64_JMP_SLOT, elf.R_X86_64_GLOB_DAT, elf.R_X86_64_IRELATIVE:
			t.slots = append(t.slots, slot{
				addr:   binary.LittleEndian.Uint64(table),
				symbol: binary.LittleEndian.Uint32(table[12:]),
				addend: binary.LittleEndian.Uint64(table[16:]),
				called: called,
			})
		}
	}
}

// slotAt returns the slot with exactly this address.
func (t *linkage) slotAt(addr uint64) (slot, bool) {
	i, ok := slices.BinarySearchFunc(t.slots, addr, func(k slot, addr uint64) int { return cmp.Compare(k.addr, addr) })
	if !ok {
		return slot{}, false
	}
	return t.slots[i], true
}

// target names what a relocation refers to as BFD does (bfd/elfxx-x86.c,
// _bfd_x86_elf_get_synthetic_symtab): "read", "*ABS*+0x3b0".
func (t *linkage) target(k slot) (string, bool) {
	name := "*ABS*"
	if k.symbol != 0 {
		if t.dynamic == nil || uint64(k.symbol) >= uint64(t.dynamic.count()) {
			return "", false
		}
		s := t.dynamic.symbolAt(int(k.symbol))
		if name = string(t.dynamic.rawName(&s)); name == "" {
			return "", false
		}
	}
	if k.addend != 0 {
		name += fmt.Sprintf("+%#x", k.addend)
	}
	return name, true
}

// wordAt names the word of the global offset table at addr: "read@got.plt"
// (gdb's name) if stubs jump through it, "environ@got" if code reads it.
func (t *linkage) wordAt(addr uint64) (Symbol, bool) {
	k, ok := t.slotAt(addr &^ (slotSize - 1))
	if !ok {
		return Symbol{}, false
	}
	name, ok := t.target(k)
	if name += "@got"; k.called {
		name += ".plt"
	}
	return Symbol{Name: name, Value: k.addr, Size: slotSize, Kind: SymbolObject, Synthetic: true}, ok
}
