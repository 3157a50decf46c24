package corestream

import (
	"bytes"
	"debug/elf"
	"io"
)

// Entries of the auxiliary vector (linux/auxvec.h). The kernel puts the strings of the arguments and
// of the environment between the two (create_elf_tables in fs/binfmt_elf.c, bprm_execve in fs/exec.c).
const (
	auxRandom = 25
	auxExecFn = 31
)

// segment copies one segment.
type segment struct {
	*rewriter
	prog *elf.Prog64
	// addr is the address of the next byte that is written or left out.
	addr uint64
	// object has the contents of the mapped file, nil if it is not known; offset is where in it the
	// segment begins.
	object *Object
	offset uint64
	// piece is the index of the program header that grows.
	piece int
}

// findObject finds the file of a segment: the kernel writes a segment for each mapping.
func (s *segment) findObject() {
	p := s.prog
	i := s.head.FileAt(p.Vaddr)
	if i < 0 || p.Vaddr%pageSize != 0 || s.head.Files[i].Offset%pageSize != 0 {
		return
	}
	f := &s.head.Files[i]
	writable := elf.ProgFlag(p.Flags)&elf.PF_W != 0
	if p.Vaddr+p.Memsz > f.End || writable && !s.unchanged {
		return
	}
	s.object, s.offset = s.options.Objects[i], f.Offset+(p.Vaddr-f.Start)
}

// begin begins a program header at an address.
func (s *segment) begin(addr uint64) {
	p := *s.prog
	p.Off, p.Vaddr, p.Filesz, p.Memsz = s.out.at, addr, 0, 0
	s.pieces = append(s.pieces, p)
	s.piece = len(s.pieces) - 1
}

// end ends the last program header.
func (s *segment) end(addr uint64) {
	last := &s.pieces[s.piece]
	last.Memsz = addr - last.Vaddr
}

// contents copies what the stream has. Of each buffer the last bytes stay for the next one, because
// a string may continue.
func (s *segment) contents() error {
	if err := s.head.in.skipTo(s.prog.Off); err != nil && !isEnd(err) {
		return err
	}
	left, have := s.prog.Filesz, 0
	for {
		want := int(min(left, uint64(bufferSize-have)))
		n, err := io.ReadFull(s.head.in.r, s.buffer[have:have+want])
		s.head.in.at += uint64(n)
		left, have = left-uint64(n), have+n
		if err != nil && !isEnd(err) {
			return err
		}
		last := left == 0 || err != nil
		ready := s.redact(s.buffer[:have], last)
		if err := s.pages(s.buffer[:ready]); err != nil {
			return err
		}
		have = copy(s.buffer, s.buffer[ready:have])
		if last {
			s.cut(left)
			return nil
		}
	}
}

// redact blanks the secrets of a buffer and returns how many bytes of it are finished.
func (s *segment) redact(b []byte, last bool) int {
	ready := len(b)
	if !last {
		ready = (len(b) - held) &^ (pageSize - 1)
	}
	r := s.options.Redactor
	if r == nil {
		return ready
	}
	low, high := s.head.Auxv[auxRandom], s.head.Auxv[auxExecFn]
	if low < high && high-low <= longestStrings && low < s.addr+uint64(len(b)) && high > s.addr {
		from, to := max(low, s.addr)-s.addr, min(high-s.addr, uint64(len(b)))
		whole := int(from) + r.strings(b[from:to])
		if !last && high-s.addr > uint64(len(b)) && len(b)-whole < longestString {
			ready = min(ready, whole&^(pageSize-1))
		}
	}
	r.copies(b)
	return ready
}

// cut notes that the stream lacked the last bytes of a segment.
func (s *segment) cut(missing uint64) {
	if missing == 0 {
		return
	}
	s.result.Missing += missing
	s.end(s.addr)
	s.begin(s.addr)
	s.pieces[s.piece].Off, s.pieces[s.piece].Filesz = cutOffset, missing
	s.addr += missing
}

// pages writes memory, but for pages that the object has as well.
func (s *segment) pages(b []byte) error {
	same := s.same(b)
	for at := 0; at < len(b); {
		end, equal := run(same, at, len(b))
		var err error
		if equal && (end-at)/pageSize >= leastPages && s.gaps < mostGaps {
			s.leaveOut(uint64(end - at))
		} else {
			err = s.keep(b[at:end])
		}
		if err != nil {
			return err
		}
		at = end
	}
	return nil
}

// run returns where the pages from at on end that are alike in being equal to the object's.
func run(same []bool, at, size int) (end int, equal bool) {
	page := func(at int) bool { return at/pageSize < len(same) && same[at/pageSize] }
	equal = page(at)
	for end = at; end < size && page(end) == equal; {
		end = min(end+pageSize, size)
	}
	return end, equal
}

// same tells which whole pages of b the object has as well. An object whose file cannot be read
// has none.
func (s *segment) same(b []byte) []bool {
	offset := s.offset + (s.addr - s.prog.Vaddr)
	if s.object == nil || s.addr%pageSize != 0 || offset >= s.object.Size {
		return nil
	}
	n, err := s.object.Contents.ReadAt(s.file[:min(uint64(len(b)), s.object.Size-offset)], int64(offset))
	if err != nil && err != io.EOF {
		return nil
	}
	same := make([]bool, n/pageSize)
	for i := range same {
		page := FileRange{offset + uint64(i)*pageSize, offset + uint64(i+1)*pageSize}
		equal := bytes.Equal(b[i*pageSize:(i+1)*pageSize], s.file[i*pageSize:(i+1)*pageSize])
		if page.Start == 0 && equal {
			s.proved[s.object] = true
		}
		same[i] = equal && s.proved[s.object] && !s.object.keeps(page)
	}
	return same
}

// keeps reports whether a page has something that the core keeps; the first one has the headers.
func (o *Object) keeps(page FileRange) bool {
	for _, k := range o.Keep {
		if page.Start < k.End && k.Start < page.End {
			return true
		}
	}
	return page.Start == 0
}

// keep writes memory into the segment.
func (s *segment) keep(b []byte) error {
	if p := &s.pieces[s.piece]; p.Vaddr+p.Filesz != s.addr {
		s.end(s.addr)
		s.begin(s.addr)
		s.gaps++
	}
	if _, err := s.out.Write(b); err != nil {
		return err
	}
	s.pieces[s.piece].Filesz += uint64(len(b))
	s.addr += uint64(len(b))
	return nil
}

// leaveOut leaves out memory: the segment has it in memory and not in the file.
func (s *segment) leaveOut(n uint64) {
	s.result.LeftOut += n
	s.addr += n
}
