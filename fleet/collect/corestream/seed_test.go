package corestream

import (
	"debug/elf"
	"encoding/binary"
)

// Seed returns a small core: a file of zeros that is mapped, and a stack with an environment.
func Seed() []byte {
	le := binary.LittleEndian
	note := func(kind uint32, desc []byte) []byte {
		b := le.AppendUint32(nil, 5)
		b = le.AppendUint32(b, uint32(len(desc)))
		b = append(le.AppendUint32(b, kind), "CORE\x00\x00\x00\x00"...)
		return append(b, append(desc, make([]byte, -len(desc)&3)...)...)
	}
	const base, stack = 0x400000, 0x7ffd00000000
	status := make([]byte, prstatusSize)
	le.PutUint16(status[prstatusCursig:], 11)
	le.PutUint32(status[prstatusTID:], 7)
	le.PutUint64(status[prstatusRIP:], base+16)
	le.PutUint64(status[prstatusRSP:], stack+16)
	var auxv, files []byte
	for _, v := range []uint64{auxRandom, stack + 64, auxExecFn, stack + 4000, 0, 0} {
		auxv = le.AppendUint64(auxv, v)
	}
	for _, v := range []uint64{1, pageSize, base, base + 8*pageSize, 0} {
		files = le.AppendUint64(files, v)
	}
	notes := append(note(notePrstatus, status), note(notePrpsinfo, make([]byte, prpsinfoSize))...)
	notes = append(notes, note(noteAuxv, auxv)...)
	notes = append(notes, note(noteFile, append(files, "/nowhere/prog\x00"...))...)
	at := uint64(headerSize + 3*programSize)
	list := []elf.Prog64{
		{Type: uint32(elf.PT_NOTE), Off: at, Filesz: uint64(len(notes)), Align: 4},
		{Type: uint32(elf.PT_LOAD), Flags: 5, Off: at + uint64(len(notes)), Vaddr: base, Filesz: 8 * pageSize, Memsz: 8 * pageSize},
		{Type: uint32(elf.PT_LOAD), Flags: 6, Off: at + uint64(len(notes)) + 8*pageSize, Vaddr: stack, Filesz: pageSize, Memsz: pageSize},
	}
	h, err := header(headerSize, len(list))
	if err != nil {
		panic(err)
	}
	table, err := encode(list)
	if err != nil {
		panic(err)
	}
	memory := make([]byte, 9*pageSize)
	copy(memory[8*pageSize+100:], "prog\x00DB_PASSWORD=correct-horse\x00A=1\x00")
	b := append(h[:headerSize:headerSize], table...)
	return append(append(b, notes...), memory...)
}
