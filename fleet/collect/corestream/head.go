package corestream

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
)

const (
	headerSize  = 64 // sizeof(Elf64_Ehdr)
	programSize = 56 // sizeof(Elf64_Phdr)
	sectionSize = 64 // sizeof(Elf64_Shdr)
	pageSize    = 4096
	// manyPrograms (PN_XNUM, linux/elf.h) says that e_phnum cannot hold the number.
	manyPrograms = 0xffff
	// mostPrograms bounds the segments; each is a mapping, and vm.max_map_count is set to a million
	// at most in practice.
	mostPrograms = 1 << 20
)

// FormatError says why a stream is no core that this package can rewrite.
type FormatError struct {
	Offset uint64 // in the stream, in bytes
	Reason string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("core: at offset %#x: %s", e.Offset, e.Reason)
}

// Head is what a core says before its memory: enough to know which failure it is.
type Head struct {
	// Thread is the one that failed: the kernel writes it first.
	Thread Thread
	// Command is the kernel's short name of the program, at most 15 bytes (NT_PRPSINFO).
	Command string
	// Auxv is the auxiliary vector by AT_ type; nil: the core has none.
	Auxv map[uint64]uint64
	// Files are the mapped files (NT_FILE), in the order of their addresses.
	Files []FileMapping
	// Bytes is the size of the whole core, as its headers say.
	Bytes uint64

	in    *stream
	loads []elf.Prog64 // PT_LOAD, in the order of their contents
	// code are the ranges that may be executed, in the order of addresses.
	code  []elf.Prog64
	note  elf.Prog64
	notes []byte // the part of the notes that was read
	// arguments is where pr_psargs of NT_PRPSINFO is in notes.
	arguments []byte
}

// Thread is a thread at the signal that ended the process.
type Thread struct {
	TID, Signal int
	// PC and SP are the instruction pointer and the stack pointer.
	PC, SP uint64
}

// FileMapping is a range of memory that a file was mapped to.
type FileMapping struct {
	Start, End uint64 // End is the first address after it
	Offset     uint64 // in the file, in bytes
	Path       string // in the process's mount namespace; a removed file has " (deleted)" after it
}

// ReadHead reads a core up to the failing thread's notes. The rest is read by Rewrite. The error is
// a *FormatError for a stream that is no core of x86-64, or that of the reader.
func ReadHead(r io.Reader) (*Head, error) {
	h := &Head{in: &stream{r: r}}
	var b [headerSize]byte
	if err := h.in.full(b[:]); err != nil {
		return nil, h.cut("the ELF header", err)
	}
	header, err := parseHeader(b[:])
	if err != nil {
		return nil, err
	}
	if err := h.readPrograms(header); err != nil {
		return nil, err
	}
	if err := h.in.skipTo(h.note.Off); err != nil {
		return nil, h.cut("the notes", err)
	}
	return h, h.readNotes()
}

// cut describes a stream that ends too early.
func (h *Head) cut(where string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &FormatError{h.in.at, "it ends within or before " + where}
	}
	return err
}

func parseHeader(b []byte) (*elf.Header64, error) {
	header := new(elf.Header64)
	if _, err := binary.Decode(b, binary.LittleEndian, header); err != nil {
		return nil, err
	}
	switch {
	case !bytes.HasPrefix(b, []byte(elf.ELFMAG)):
		return nil, &FormatError{0, "no ELF header"}
	case elf.Class(b[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(b[elf.EI_DATA]) != elf.ELFDATA2LSB || elf.Machine(header.Machine) != elf.EM_X86_64:
		return nil, &FormatError{0, fmt.Sprintf("a core of %v, %v: only x86-64 is supported", elf.Machine(header.Machine), elf.Class(b[elf.EI_CLASS]))}
	case elf.Type(header.Type) != elf.ET_CORE:
		return nil, &FormatError{16, fmt.Sprintf("no core but an ELF file of type %v", elf.Type(header.Type))}
	case header.Phentsize != programSize:
		return nil, &FormatError{54, fmt.Sprintf("program headers of %d bytes, not %d", header.Phentsize, programSize)}
	}
	return header, nil
}

// readPrograms reads the program headers. Where e_phnum cannot hold their number, section header 0
// has it, and the kernel writes that at the end of the core; but its notes follow the last program
// header, and the first one says where they are.
func (h *Head) readPrograms(header *elf.Header64) error {
	if err := h.in.skipTo(header.Phoff); err != nil {
		return h.cut("the program headers", err)
	}
	count := uint64(header.Phnum)
	var list []elf.Prog64
	for i := uint64(0); i < count; i++ {
		var b [programSize]byte
		if err := h.in.full(b[:]); err != nil {
			return h.cut("the program headers", err)
		}
		var p elf.Prog64
		if _, err := binary.Decode(b[:], binary.LittleEndian, &p); err != nil {
			return err
		}
		if i == 0 && count == manyPrograms {
			if elf.ProgType(p.Type) != elf.PT_NOTE || p.Off < header.Phoff || (p.Off-header.Phoff)%programSize != 0 {
				return &FormatError{header.Phoff, "the number of its program headers is at its end"}
			}
			count = (p.Off - header.Phoff) / programSize
		}
		if count > mostPrograms {
			return &FormatError{header.Phoff, fmt.Sprintf("%d program headers, more than %d", count, mostPrograms)}
		}
		list = append(list, p)
	}
	return h.arrange(list)
}

// arrange checks that contents follow each other in the stream.
func (h *Head) arrange(list []elf.Prog64) error {
	notes := 0
	for _, p := range list {
		switch elf.ProgType(p.Type) {
		case elf.PT_NOTE:
			h.note = p
			notes++
		case elf.PT_LOAD:
			if p.Filesz > p.Memsz || p.Vaddr+p.Memsz < p.Vaddr || p.Off+p.Filesz < p.Off {
				return &FormatError{h.in.at, fmt.Sprintf("a segment at %#x of %d bytes, of which %d are stored", p.Vaddr, p.Memsz, p.Filesz)}
			}
			h.loads = append(h.loads, p)
			if elf.ProgFlag(p.Flags)&elf.PF_X != 0 {
				h.code = append(h.code, p)
			}
		}
	}
	if notes != 1 {
		return &FormatError{h.in.at, fmt.Sprintf("%d segments of notes, not one", notes)}
	}
	slices.SortStableFunc(h.code, func(a, b elf.Prog64) int { return compare(a.Vaddr, b.Vaddr) })
	slices.SortStableFunc(h.loads, func(a, b elf.Prog64) int { return compare(a.Off, b.Off) })
	at := h.note.Off
	if at < h.in.at || at+h.note.Filesz < at {
		return &FormatError{h.in.at, "the notes precede the program headers"}
	}
	at += h.note.Filesz
	for _, p := range h.loads {
		if p.Filesz == 0 {
			continue
		}
		if p.Off < at {
			return &FormatError{p.Off, "the contents of segments overlap"}
		}
		at = p.Off + p.Filesz
	}
	h.Bytes = at
	return nil
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// FileAt returns the index in Files of the mapping that has an address, -1 if none has it.
func (h *Head) FileAt(addr uint64) int {
	i := sort.Search(len(h.Files), func(i int) bool { return h.Files[i].End > addr })
	if i == len(h.Files) || addr < h.Files[i].Start {
		return -1
	}
	return i
}

// Executable reports whether a segment at an address may be executed.
func (h *Head) Executable(addr uint64) bool {
	i := sort.Search(len(h.code), func(i int) bool { return h.code[i].Vaddr > addr })
	return i > 0 && addr-h.code[i-1].Vaddr < h.code[i-1].Memsz
}
