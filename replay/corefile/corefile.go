package corefile

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/internal/procmaps"
)

// CoreThread is a thread of the process whose core is written.
type CoreThread struct {
	TID int
	// Signal is the signal that the thread is about to receive, 0 for none. Info is its
	// siginfo_t.
	Signal int
	Info   *[128]byte
}

// CoreSource gives the writer of cores the tracer's view of the process.
type CoreSource interface {
	// Regset returns the registers of a stopped thread for a note type of linux/elf.h:
	// NT_PRSTATUS, NT_PRFPREG, NT_X86_XSTATE (PTRACE_GETREGSET). If it fails for one of the
	// last two, the core lacks that note.
	Regset(tid int, note uint32) ([]byte, error)
}

// CoreOptions describe the process whose core is written.
type CoreOptions struct {
	PID int
	// Threads are all threads, each in a ptrace stop. The thread that failed is first.
	Threads []CoreThread
	Source  CoreSource
	// Skip are address ranges whose contents are left out, such as the
	// engine's log.
	Skip []Range
	// Omit are ranges that the core does not mention.
	Omit []Range
}

// Range is the range [Start, End).
type Range struct{ Start, End evidence.Addr }

// CoreResult describes a written core.
type CoreResult struct {
	// Size is the size of the file. Bytes is how much memory it stores; the rest is holes.
	Size, Bytes int64
	// Missing are the parts of the memory that could not be read. No segment of the core has
	// contents for them.
	Missing []MissingMemory
}

// MissingMemory is memory that the core should have and does not have.
type MissingMemory struct {
	Range
	Err error
}

const (
	corePage = 4096
	// coreChunk is the size of one read.
	coreChunk = 1 << 20
	// spareHeaders is the number of spare headers for segments that unreadable pages split.
	spareHeaders = 64
	elfHeader    = 64
	elfProgram   = 56
	elfSection   = 64
	elfManyProgs = 0xffff // PN_XNUM: section header 0 has the number
)

// coreSegment is a PT_LOAD.
type coreSegment struct {
	Range
	flags  uint32
	offset int64
	size   uint64 // of the contents, from the start on
	// touched are the parts that may be other than zero; nil stands for all.
	touched []Range
}

// WriteCore writes an ELF core of a process that is stopped under ptrace. The core has what the
// kernel's core would have with the default filter (core(5)). Anonymous memory that was never
// touched is zeros: holes of the file.
//
// It reads the process's memory through /proc. So any thread may call it, except for what
// o.Source does. The file must be empty.
func WriteCore(f *os.File, o CoreOptions) (*CoreResult, error) {
	w := &coreWriter{file: f, options: o, result: new(CoreResult)}
	if err := w.write(); err != nil {
		return w.result, fmt.Errorf("record: core of process %d: %w", o.PID, err)
	}
	return w.result, nil
}

type coreWriter struct {
	file    *os.File
	options CoreOptions
	result  *CoreResult
	memory  *os.File
	buffer  []byte
}

func (w *coreWriter) write() error {
	if len(w.options.Threads) == 0 {
		return errors.New("no threads")
	}
	var err error
	// The first thread of a process may have ended, and its memory with it.
	if w.memory, err = os.Open(fmt.Sprintf("/proc/%d/mem", w.options.Threads[0].TID)); err != nil {
		return err
	}
	defer w.memory.Close()
	areas, err := procmaps.ReadAreas(w.options.Threads[0].TID)
	if err != nil {
		return err
	}
	// The recording's own log is mapped there. It is not the program's.
	areas = slices.DeleteFunc(areas, func(a procmaps.Area) bool {
		return a.Start >= agent.EngineLog && a.End <= agent.EngineStacks || within(addresses(&a), w.options.Omit)
	})
	notes, err := w.notes(areas)
	if err != nil {
		return err
	}
	segments, err := w.segments(areas)
	if err != nil {
		return err
	}
	notesAt := int64(elfHeader + elfSection + (len(segments)+1+spareHeaders)*elfProgram)
	at := (notesAt + int64(len(notes)) + corePage - 1) &^ (corePage - 1)
	for i := range segments {
		s := &segments[i]
		s.offset = at
		if err := w.contents(s); err != nil {
			return err
		}
		at += int64(s.size+corePage-1) &^ (corePage - 1)
	}
	segments = w.withoutMissing(segments)
	if _, err := w.file.WriteAt(coreHeaders(segments, notesAt, int64(len(notes))), 0); err != nil {
		return err
	}
	if _, err := w.file.WriteAt(notes, notesAt); err != nil {
		return err
	}
	w.result.Size = at
	return w.file.Truncate(at)
}

// contents copies a segment's memory. Pages of zeros are left as holes.
func (w *coreWriter) contents(s *coreSegment) error {
	end := s.Start + evidence.Addr(s.size)
	if s.size == 0 {
		return nil
	}
	touched := s.touched
	if touched == nil {
		touched = []Range{{s.Start, end}}
	}
	if w.buffer == nil {
		w.buffer = make([]byte, coreChunk)
	}
	for _, r := range touched {
		for at := r.Start; at < min(r.End, end); {
			n, err := w.read(at, min(uint64(coreChunk), uint64(min(r.End, end)-at)))
			if err != nil {
				return err
			}
			if err := w.copyPages(w.buffer[:n], s.offset+int64(at-s.Start)); err != nil {
				return err
			}
			at += evidence.Addr(max(n, corePage)) // an unreadable page is noted
		}
	}
	return nil
}

// read fills the buffer with whole pages from at on. It returns an error if it cannot read the
// first page.
func (w *coreWriter) read(at evidence.Addr, n uint64) (int, error) {
	got, err := w.memory.ReadAt(w.buffer[:n], int64(at))
	got &^= corePage - 1
	switch {
	case got > 0:
		return got, nil
	case errors.Is(err, io.EOF):
		return 0, errors.New("it ended while its memory was read")
	}
	w.miss(at, err)
	return 0, nil
}

func (w *coreWriter) miss(at evidence.Addr, err error) {
	m := w.result.Missing
	var errno unix.Errno
	errors.As(err, &errno)
	if last := len(m) - 1; last >= 0 && m[last].End == at && errors.Is(m[last].Err, errno) {
		m[last].End += corePage
		return
	}
	w.result.Missing = append(m, MissingMemory{Range{at, at + corePage}, err})
}

var zeroPage [corePage]byte

// copyPages writes the pages that are not zero, adjacent pages in one write.
func (w *coreWriter) copyPages(b []byte, at int64) error {
	for start := 0; start < len(b); {
		if [corePage]byte(b[start:]) == zeroPage {
			start += corePage
			continue
		}
		end := start + corePage
		for end < len(b) && [corePage]byte(b[end:]) != zeroPage {
			end += corePage
		}
		if _, err := w.file.WriteAt(b[start:end], at+int64(start)); err != nil {
			return err
		}
		w.result.Bytes += int64(end - start)
		start = end
	}
	return nil
}

// withoutMissing cuts the segments where memory could not be read. Where there are too few
// headers, the rest of a segment is dropped as well.
func (w *coreWriter) withoutMissing(segments []coreSegment) []coreSegment {
	missing, room := w.result.Missing, spareHeaders
	var out []coreSegment
	for _, s := range segments {
		for len(missing) > 0 && missing[0].Start < s.End {
			m := missing[0].Range
			missing = missing[1:]
			if m.End <= s.Start {
				continue // in a segment whose rest was dropped
			}
			before := coreSegment{Range: Range{s.Start, m.End}, flags: s.flags, offset: s.offset, size: uint64(m.Start - s.Start)}
			if room == 0 {
				before.End = s.End
			}
			out = append(out, before)
			cut := uint64(before.End - s.Start)
			s.Start, s.offset, s.size = before.End, s.offset+int64(cut), s.size-min(s.size, cut)
			room = max(room-1, 0)
		}
		if s.Start < s.End {
			out = append(out, s)
		}
	}
	return out
}

// coreHeaders returns the ELF header, section header 0 and the program headers.
func coreHeaders(segments []coreSegment, notesAt, notesSize int64) []byte {
	count := len(segments) + 1
	b := append([]byte(elf.ELFMAG), byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT))
	b = append(b, make([]byte, 16-len(b))...)
	b = binary.LittleEndian.AppendUint16(b, uint16(elf.ET_CORE))
	b = binary.LittleEndian.AppendUint16(b, uint16(elf.EM_X86_64))
	b = binary.LittleEndian.AppendUint32(b, uint32(elf.EV_CURRENT))
	sections, sectionsAt := uint16(0), uint64(0)
	if count >= elfManyProgs {
		sections, sectionsAt = 1, elfHeader
	}
	for _, v := range []uint64{0, elfHeader + elfSection, sectionsAt} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, 0)
	for _, v := range []uint16{elfHeader, elfProgram, uint16(min(count, elfManyProgs)), elfSection, sections, 0} {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	section := make([]byte, elfSection)
	if sections > 0 {
		binary.LittleEndian.PutUint32(section[32:], 1) // sh_size: one section header
		binary.LittleEndian.PutUint32(section[44:], uint32(count))
	}
	b = append(b, section...)
	b = programHeader(b, elf.PT_NOTE, 0, notesAt, 0, uint64(notesSize), 0, 4)
	for _, s := range segments {
		b = programHeader(b, elf.PT_LOAD, s.flags, s.offset, uint64(s.Start), s.size, uint64(s.End-s.Start), corePage)
	}
	return b
}

func programHeader(b []byte, kind elf.ProgType, flags uint32, offset int64, addr, filesz, memsz, align uint64) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(kind))
	b = binary.LittleEndian.AppendUint32(b, flags)
	for _, v := range []uint64{uint64(offset), addr, 0, filesz, memsz, align} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}
