package corestream

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// Note types (linux/elf.h), and fields of struct elf_prstatus and elf_prpsinfo of x86-64
// (linux/elfcore.h); the registers are a struct user_regs_struct.
const (
	notePrstatus   = 1
	notePrpsinfo   = 3
	noteAuxv       = 6
	noteFile       = 0x46494c45
	noteHeaderSize = 12

	prstatusCursig = 12
	prstatusTID    = 32
	prstatusRIP    = 112 + 16*8
	prstatusRSP    = 112 + 19*8
	prstatusSize   = 336
	prpsinfoName   = 40
	prpsinfoArgs   = 56
	prpsinfoSize   = 136
)

// mostNotes bounds the notes that are kept in memory: NT_FILE has 4 MiB at most unless
// kernel.core_file_note_size_limit is raised, to 16 MiB at most (fs/coredump.c).
const mostNotes = 20 << 20

// readNotes reads the notes up to NT_FILE, which is the last one before the other threads' (fill_note_info in
// fs/binfmt_elf.c).
func (h *Head) readNotes() error {
	for threads := 0; uint64(len(h.notes))+noteHeaderSize <= h.note.Filesz && h.Files == nil; {
		start := len(h.notes)
		if err := h.more(noteHeaderSize); err != nil {
			return err
		}
		le, b := binary.LittleEndian, h.notes[start:]
		nameSize, size, kind := uint64(le.Uint32(b)), uint64(le.Uint32(b[4:])), le.Uint32(b[8:])
		name, desc := (nameSize+3)&^3, (size+3)&^3
		if uint64(len(h.notes))+name+desc > min(h.note.Filesz, mostNotes) {
			break
		}
		if err := h.more(name + desc); err != nil {
			return err
		}
		b = h.notes[uint64(start)+noteHeaderSize:]
		if !bytes.Equal(b[:nameSize], []byte("CORE\x00")) {
			continue
		}
		if kind == notePrstatus {
			if threads++; threads > 1 {
				break
			}
		}
		if err := h.take(kind, b[name:name+size]); err != nil {
			return err
		}
	}
	if h.Thread.TID == 0 {
		return &FormatError{h.note.Off, "the notes have no thread's registers (NT_PRSTATUS)"}
	}
	return nil
}

// more reads that many bytes more of the notes.
func (h *Head) more(n uint64) error {
	at := len(h.notes)
	h.notes = slices.Grow(h.notes, int(n))[:at+int(n)]
	if err := h.in.full(h.notes[at:]); err != nil {
		return h.cut("the notes", err)
	}
	return nil
}

func (h *Head) take(kind uint32, desc []byte) error {
	le := binary.LittleEndian
	switch {
	case kind == notePrstatus && len(desc) >= prstatusSize:
		h.Thread = Thread{
			TID: int(int32(le.Uint32(desc[prstatusTID:]))), Signal: int(int16(le.Uint16(desc[prstatusCursig:]))),
			PC: le.Uint64(desc[prstatusRIP:]), SP: le.Uint64(desc[prstatusRSP:]),
		}
	case kind == notePrpsinfo && len(desc) >= prpsinfoSize:
		h.Command = untilNUL(desc[prpsinfoName:prpsinfoArgs])
		h.arguments = bytes.Clone(desc[prpsinfoArgs:prpsinfoSize])
	case kind == noteAuxv:
		h.Auxv = parseAuxv(desc)
	case kind == noteFile:
		files, err := parseFiles(desc)
		if err != nil {
			return &FormatError{h.in.at, fmt.Sprintf("NT_FILE: %v", err)}
		}
		h.Files = files
	}
	return nil
}

func untilNUL(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

func parseAuxv(b []byte) map[uint64]uint64 {
	const most = 256
	auxv := map[uint64]uint64{}
	for ; len(b) >= 16 && len(auxv) < most; b = b[16:] {
		kind := binary.LittleEndian.Uint64(b)
		if kind == 0 {
			break
		}
		auxv[kind] = binary.LittleEndian.Uint64(b[8:])
	}
	return auxv
}

// parseFiles reads NT_FILE: a count, the unit of offsets, the ranges, then the names
// (fill_files_note in fs/binfmt_elf.c).
func parseFiles(b []byte) ([]FileMapping, error) {
	if len(b) < 16 {
		return nil, fmt.Errorf("%d bytes, no header", len(b))
	}
	le := binary.LittleEndian
	count, unit := le.Uint64(b), le.Uint64(b[8:])
	if count > uint64(len(b)-16)/24 {
		return nil, fmt.Errorf("%d mappings do not fit into %d bytes", count, len(b))
	}
	names := b[16+24*count:]
	files := make([]FileMapping, 0, count)
	for i := range count {
		entry, end := b[16+24*i:], bytes.IndexByte(names, 0)
		if end < 0 {
			return nil, fmt.Errorf("names of %d of %d mappings", i, count)
		}
		f := FileMapping{Start: le.Uint64(entry), End: le.Uint64(entry[8:]), Path: string(names[:end])}
		names = names[end+1:]
		units := le.Uint64(entry[16:])
		if unit == 0 || units > (1<<62)/unit || f.Start >= f.End || len(files) > 0 && f.Start < files[len(files)-1].End {
			return nil, fmt.Errorf("mapping %d is from %#x to %#x, at offset %d units of %d", i, f.Start, f.End, units, unit)
		}
		f.Offset = units * unit
		files = append(files, f)
	}
	return files, nil
}
