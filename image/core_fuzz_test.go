package image

import (
	"encoding/binary"
	"slices"
	"testing"
)

// seedCore is a small core with an object in its memory: an ELF header, a
// dynamic section, r_debug and a list of two link_maps.
func seedCore() []byte {
	const base = 0x400000
	le := binary.LittleEndian
	memory := make([]byte, 2*pageSize)
	copy(memory, "\x7fELF\x02\x01\x01")
	le.PutUint16(memory[16:], 2)
	le.PutUint16(memory[18:], 62)
	le.PutUint64(memory[32:], elfHeaderSize)
	le.PutUint16(memory[54:], programHeaderSize)
	headers := []programHeader{
		{kind: 6, vaddr: base + elfHeaderSize},
		{kind: 1, flags: 5, vaddr: base, filesz: 2 * pageSize, memsz: 2 * pageSize},
		{kind: 2, vaddr: base + 0x800, filesz: 32, memsz: 32},
		{kind: 4, vaddr: base + 0x700, filesz: 36, memsz: 36},
		{kind: 7, vaddr: base + 0x1100, filesz: 8, memsz: 16, alignm: 8},
	}
	le.PutUint16(memory[56:], uint16(len(headers)))
	for i, h := range headers {
		p := memory[elfHeaderSize+i*programHeaderSize:]
		le.PutUint32(p, h.kind)
		le.PutUint32(p[4:], h.flags)
		for j, v := range []uint64{h.offset, h.vaddr, 0, h.filesz, h.memsz, h.alignm} {
			le.PutUint64(p[8+8*j:], v)
		}
	}
	copy(memory[0x700:], noteBytes("GNU", 3, []byte("0123456789abcdef0123")))
	le.PutUint64(memory[0x800:], 21)
	le.PutUint64(memory[0x808:], base+0x900)
	le.PutUint64(memory[0x908:], base+0x1000)
	copy(memory[0x1000:], links([]string{"", "liba"}, []int{1, -1}).data)
	le.PutUint64(memory[0x1018:], base+0x1040)
	stack := make([]byte, pageSize)
	notes := slices.Concat(
		noteBytes("CORE", notePrstatus, prstatusBytes(7, 11, base+0x100, 0x7ffd00000800)),
		noteBytes("CORE", notePrpsinfo, make([]byte, prpsinfoSize)),
		noteBytes("CORE", noteSiginfo, siginfoBytes(11, 1, 8)),
		noteBytes("CORE", noteAuxv, auxvBytes(auxPHDR, base+elfHeaderSize, auxPHNUM, uint64(len(headers)), auxEntry, base+0x100, auxRandom, 0x7ffd00000f00)),
		noteBytes("CORE", noteFile, fileNoteBytes(fileMapping{base, base + 2*pageSize, 0, "/nowhere/prog"})),
	)
	loads := []programHeader{
		{kind: 1, flags: 5, vaddr: base, filesz: 2 * pageSize, memsz: 2 * pageSize},
		{kind: 1, flags: 6, vaddr: 0x7ffd00000000, filesz: pageSize, memsz: pageSize},
	}
	start := uint64(elfHeaderSize + (len(loads)+1)*programHeaderSize + len(notes))
	loads[0].offset, loads[1].offset = start, start+2*pageSize
	return slices.Concat(coreBytes(notes, loads), memory, stack)
}

func TestSeedCore(t *testing.T) {
	p, err := readCore("seed", seedCore(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Exe == nil || p.Exe.BuildID == "" || p.Exe.TLSID != 1 || len(p.Threads) != 1 {
		t.Errorf("%+v, executable %+v", p.Program, p.Exe)
	}
	exercise(p)
}

// FuzzCore reads bytes as a core file. It would open existing files that the
// core names; the seeds name none.
func FuzzCore(f *testing.F) {
	seed := seedCore()
	f.Add(seed)
	f.Add(seed[:len(seed)-pageSize])
	f.Add(seed[:1000])
	f.Add(manySegments(3))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := readCore("fuzz", data, Options{})
		if err != nil {
			return
		}
		for i := 1; i < len(p.Mappings); i++ {
			if p.Mappings[i].Start < p.Mappings[i-1].End {
				t.Errorf("mappings overlap at %v", p.Mappings[i].Start)
			}
		}
		if len(p.Mappings) < 1000 && len(p.Modules) < 100 && len(p.Threads) < 100 {
			exercise(p)
		}
		p.Close()
	})
}
