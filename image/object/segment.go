package object

import (
	"debug/elf"
	"io"
)

// Segment is a program header's extent.
type Segment struct {
	Vaddr, Memsz   uint64
	Offset, Filesz uint64
	// Flags are elf.PF_R, PF_W, PF_X.
	Flags uint32
	// Align is p_align, in bytes.
	Align uint64
}

func (p *program) segment() Segment {
	return Segment{Vaddr: p.vaddr, Memsz: p.memsz, Offset: p.offset, Filesz: p.filesz, Flags: p.flags, Align: p.align}
}

// Segments returns the PT_LOAD segments in file order. The slice must not be
// written to.
func (h *headers) Segments() []Segment { return h.loads }

// Program returns the first program header of a type, such as
// elf.PT_GNU_EH_FRAME or elf.PT_DYNAMIC.
func (h *headers) Program(kind elf.ProgType) (Segment, bool) {
	for i := range h.programs {
		if p := &h.programs[i]; p.kind == uint32(kind) {
			return p.segment(), true
		}
	}
	return Segment{}, false
}

// TLS returns the PT_TLS segment.
func (h *headers) TLS() (Segment, bool) { return h.Program(elf.PT_TLS) }

// ReadAddr reads loaded file contents at a link-time address. Bytes beyond a
// segment's file size, which the loader zeroes, are an error: the process
// owns them. Writable segments are read as they were before relocation.
func (h *headers) ReadAddr(p []byte, vaddr uint64) (int, error) {
	if h.hollow {
		return 0, h.file.formatError("", 0, "address %#x: a debug file holds no loaded contents", vaddr)
	}
	done := 0
	for done < len(p) {
		b, err := h.loadedAt(vaddr + uint64(done))
		if err != nil {
			return done, err
		}
		n := 0
		if err := h.file.guard("", func() { n = copy(p[done:], b) }); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// loadedAt returns the file's bytes from a link-time address to the end of its
// segment's part of the file; never an empty slice without an error.
func (h *headers) loadedAt(vaddr uint64) ([]byte, error) {
	for i := range h.loads {
		s := &h.loads[i]
		into := vaddr - s.Vaddr
		if vaddr < s.Vaddr || into >= s.Memsz {
			continue
		}
		if into >= s.Filesz {
			return nil, h.file.formatError("", s.Offset, "address %#x is zeroed by the loader, not in the file", vaddr)
		}
		end := min(s.Filesz, s.Memsz)
		if b, ok := h.file.bytes(s.Offset, end); ok {
			return b[into:], nil
		}
		// A truncated file may still hold the start of the segment.
		if n := uint64(len(h.file.data)); s.Offset < n && into < n-s.Offset {
			return h.file.data[s.Offset+into:], nil
		}
		return nil, &FormatError{File: h.file.path, Offset: s.Offset, Err: io.ErrUnexpectedEOF,
			Reason: "the segment reaches past the end of the file"}
	}
	return nil, h.file.formatError("", 0, "address %#x is in no loaded segment", vaddr)
}
