package corestream

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"slices"
)

// Object is a file that was mapped and that is kept elsewhere.
type Object struct {
	Contents io.ReaderAt
	Size     uint64
	// Keep are the parts of the file, in bytes, that the core keeps although they are equal: its
	// headers and build-id, by which a reader of the core recognises the object.
	Keep []FileRange
}

// FileRange is the range [Start, End) of a file.
type FileRange struct{ Start, End uint64 }

// Options say how a core is rewritten.
type Options struct {
	// Objects are by their index in Head.Files. The mappings of one file have one Object.
	Objects map[int]*Object
	// Redactor blanks secrets; nil: nothing is blanked.
	Redactor *Redactor
}

// Result describes the new core.
type Result struct {
	// Header begins the new core: it is to be stored in place of the first HeaderBytes bytes that
	// were written.
	Header [HeaderBytes]byte
	// Bytes is the size of the new core, LeftOut how many bytes of memory are in an object instead.
	Bytes, LeftOut uint64
	// Missing is how many bytes the stream lacked, because it ended early: the new core is
	// truncated, too.
	Missing uint64
}

// HeaderBytes is the size of an ELF header and a section header, by which a core begins.
const HeaderBytes = headerSize + sectionSize

const (
	// bufferSize is how much of the memory is looked at together.
	bufferSize = 1 << 20
	// held is how much of it stays for the next time, because a secret may continue in what follows.
	held = longestElsewhere
	// longestString is the size of the longest string of arguments and environment
	// (MAX_ARG_STRLEN, linux/binfmts.h).
	longestString = 32 * pageSize
	// longestStrings bounds all of them: three quarters of the default stack (bprm_stack_limits in
	// fs/exec.c).
	longestStrings = 6 << 20
	// leastPages is the least number of pages in a row that are left out: each such gap costs a program
	// header.
	leastPages = 4
	// mostGaps bounds the gaps, so that e_phnum can hold the number of program headers of most cores.
	mostGaps = 32 << 10
)

// Rewrite reads the rest of the core and writes the new one, but for its header, for which it first
// writes zeros: the number of segments is known at the end, and the program headers are last. An
// error of w is returned as it is. A stream that ends early is none: see Result.Missing.
func (h *Head) Rewrite(w io.Writer, o Options) (*Result, error) {
	rw := &rewriter{head: h, options: o, out: &counter{w: w}, buffer: make([]byte, bufferSize), file: make([]byte, bufferSize), proved: map[*Object]bool{}}
	rw.unchanged = h.holdsWritten()
	if err := rw.run(); err != nil {
		return nil, err
	}
	return &rw.result, nil
}

// holdsWritten reports whether the core has the memory that the process wrote, as package image
// finds it: only then does a page that it lacks of a writable mapping count as that of the file.
func (h *Head) holdsWritten() bool {
	return slices.ContainsFunc(h.loads, func(p elf.Prog64) bool {
		if elf.ProgFlag(p.Flags)&elf.PF_W == 0 || p.Filesz == 0 || p.Filesz != p.Memsz {
			return false
		}
		i, _ := slices.BinarySearchFunc(h.Files, p.Vaddr, func(f FileMapping, addr uint64) int { return compare(f.End, addr+1) })
		return i == len(h.Files) || h.Files[i].Start >= p.Vaddr+p.Memsz
	})
}

type rewriter struct {
	head    *Head
	options Options
	out     *counter
	// buffer has memory, file the bytes of the object in its place.
	buffer, file []byte
	// proved are the objects whose first page the process's memory has as well.
	proved    map[*Object]bool
	unchanged bool
	pieces    []elf.Prog64
	gaps      int
	result    Result
}

// counter counts written bytes.
type counter struct {
	w  io.Writer
	at uint64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.at += uint64(n)
	return n, err
}

func (rw *rewriter) run() error {
	if _, err := rw.out.Write(make([]byte, HeaderBytes)); err != nil {
		return err
	}
	if err := rw.notes(); err != nil {
		return err
	}
	if err := rw.align(); err != nil {
		return err
	}
	for i := range rw.head.loads {
		if err := rw.segment(&rw.head.loads[i]); err != nil {
			return err
		}
	}
	return rw.finish()
}

// align fills the last page.
func (rw *rewriter) align() error {
	_, err := rw.out.Write(make([]byte, -rw.out.at%pageSize))
	return err
}

// notes copies the notes. The command line in NT_PRPSINFO has spaces instead of NULs. Vector registers may have what a function of
// the C library copied last.
func (rw *rewriter) notes() error {
	h, at := rw.head, rw.out.at
	if r := rw.options.Redactor; r != nil && len(h.arguments) > 0 {
		clean := bytes.Clone(h.arguments)
		for _, s := range r.finder.Text(untilNUL(clean)) {
			r.blank(clean[s.Start:s.End])
		}
		r.copies(clean)
		if i := bytes.Index(h.notes, h.arguments); i >= 0 {
			copy(h.notes[i:], clean)
		}
	}
	rw.blankCopies(h.notes)
	if _, err := rw.out.Write(h.notes); err != nil {
		return err
	}
	have := 0
	for left := h.note.Filesz - uint64(len(h.notes)); left > 0; {
		b := rw.buffer[:have+int(min(left, uint64(bufferSize-have)))]
		if err := h.in.full(b[have:]); err != nil {
			return h.cut("the end of the notes", err)
		}
		left -= uint64(len(b) - have)
		rw.blankCopies(b)
		ready := len(b)
		if left > 0 {
			ready -= held
		}
		if _, err := rw.out.Write(b[:ready]); err != nil {
			return err
		}
		have = copy(rw.buffer, b[ready:])
	}
	rw.pieces = append(rw.pieces, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: at, Filesz: h.note.Filesz, Align: h.note.Align})
	return nil
}

// blankCopies blanks the secrets that were learnt.
func (rw *rewriter) blankCopies(b []byte) {
	if r := rw.options.Redactor; r != nil {
		r.copies(b)
	}
}

// segment copies the contents of a segment.
func (rw *rewriter) segment(p *elf.Prog64) error {
	s := &segment{rewriter: rw, prog: p, addr: p.Vaddr}
	s.findObject()
	s.begin(p.Vaddr)
	if p.Filesz > 0 {
		if err := s.contents(); err != nil {
			return err
		}
	}
	s.end(p.Vaddr + p.Memsz)
	return nil
}

// finish writes the program headers, and makes the header.
func (rw *rewriter) finish() error {
	// A segment that was cut continues past the end of the file, so that readers see that it is cut.
	size := rw.out.at + uint64(len(rw.pieces))*programSize
	for i := range rw.pieces {
		if p := &rw.pieces[i]; p.Off == cutOffset {
			p.Off = (size + pageSize - 1) &^ (pageSize - 1)
		}
	}
	notes, loads := rw.pieces[:1], rw.pieces[1:]
	slices.SortStableFunc(loads, func(a, b elf.Prog64) int { return compare(a.Vaddr, b.Vaddr) })
	table, err := encode(notes, loads)
	if err != nil {
		return err
	}
	rw.result.Header, err = header(rw.out.at, len(rw.pieces))
	if err != nil {
		return err
	}
	if _, err := rw.out.Write(table); err != nil {
		return err
	}
	rw.result.Bytes = rw.out.at
	return nil
}

// isEnd reports whether a stream ended early.
func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
