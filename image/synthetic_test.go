package image

import (
	"encoding/binary"

	"diagnose/evidence"
	"diagnose/internal/siginfo"
)

// coreBytes makes a core file of notes and segments; the segments' contents
// are left to the caller.
func coreBytes(notes []byte, loads []programHeader) []byte {
	le := binary.LittleEndian
	headers := loads
	if notes != nil {
		headers = append([]programHeader{{kind: 4, filesz: uint64(len(notes))}}, loads...)
	}
	table := uint64(elfHeaderSize)
	if len(headers) >= extendedNumbering {
		table += sectionHeaderSize
	}
	b := make([]byte, table, table+uint64(len(headers)*programHeaderSize+len(notes)))
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], 4)
	le.PutUint16(b[18:], 62)
	le.PutUint64(b[32:], table)
	le.PutUint16(b[54:], programHeaderSize)
	le.PutUint16(b[56:], uint16(min(len(headers), extendedNumbering)))
	if table > elfHeaderSize {
		le.PutUint64(b[40:], elfHeaderSize)
		le.PutUint32(b[elfHeaderSize+44:], uint32(len(headers)))
	}
	if notes != nil {
		headers[0].offset = table + uint64(len(headers)*programHeaderSize)
	}
	for _, h := range headers {
		var p [programHeaderSize]byte
		le.PutUint32(p[:], h.kind)
		le.PutUint32(p[4:], h.flags)
		for i, v := range []uint64{h.offset, h.vaddr, 0, h.filesz, h.memsz, h.alignm} {
			le.PutUint64(p[8+8*i:], v)
		}
		b = append(b, p[:]...)
	}
	return append(b, notes...)
}

func noteBytes(owner string, kind uint32, desc []byte) []byte {
	le := binary.LittleEndian
	name := append([]byte(owner), 0)
	b := le.AppendUint32(nil, uint32(len(name)))
	b = le.AppendUint32(b, uint32(len(desc)))
	b = le.AppendUint32(b, kind)
	for b = append(b, name...); len(b)%4 != 0; {
		b = append(b, 0)
	}
	for b = append(b, desc...); len(b)%4 != 0; {
		b = append(b, 0)
	}
	return b
}

func prstatusBytes(tid, cursig int, pc, sp evidence.Addr) []byte {
	b := make([]byte, 336)
	le := binary.LittleEndian
	le.PutUint16(b[prstatusCursig:], uint16(cursig))
	le.PutUint32(b[prstatusPID:], uint32(tid))
	le.PutUint64(b[prstatusRegs+16*8:], uint64(pc))
	le.PutUint64(b[prstatusRegs+19*8:], uint64(sp))
	return b
}

func siginfoBytes(number, code int, addr evidence.Addr) []byte {
	b := make([]byte, siginfo.Size)
	binary.LittleEndian.PutUint32(b, uint32(number))
	binary.LittleEndian.PutUint32(b[8:], uint32(int32(code)))
	binary.LittleEndian.PutUint64(b[16:], uint64(addr))
	return b
}

func fileNoteBytes(files ...fileMapping) []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(nil, uint64(len(files)))
	b = le.AppendUint64(b, pageSize)
	for _, f := range files {
		b = le.AppendUint64(b, f.start)
		b = le.AppendUint64(b, f.end)
		b = le.AppendUint64(b, f.offset/pageSize)
	}
	for _, f := range files {
		b = append(append(b, f.path...), 0)
	}
	return b
}

func auxvBytes(pairs ...uint64) []byte {
	var b []byte
	for _, v := range append(pairs, 0, 0) {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

func manySegments(n int) []byte {
	loads := make([]programHeader, n)
	for i := range loads {
		loads[i] = programHeader{kind: 1, flags: uint32(4 + 2*(i%2)), vaddr: 0x10000 + uint64(i)*0x2000, memsz: 0x1000}
	}
	return coreBytes(noteBytes("CORE", notePrstatus, prstatusBytes(1, 11, 0x10000, 0x20000)), loads)
}
