package corefile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/internal/procmaps"
)

// addresses returns the memory of an area.
func addresses(a *procmaps.Area) Range { return Range{a.Start, a.End} }

// elfFlags returns the flags of the program header for an area.
func elfFlags(a *procmaps.Area) uint32 {
	var f elf.ProgFlag
	for i, flag := range []elf.ProgFlag{elf.PF_R, elf.PF_W, elf.PF_X} {
		if a.Perms[i] != '-' {
			f |= flag
		}
	}
	return uint32(f)
}

// keep says which part of an area a core has.
type keep int

const (
	keepNothing keep = iota
	keepHeader       // the first page, if it is an ELF object's
	keepTouched      // anonymous memory
	keepAll
)

// keepOf is vma_dump_size of the kernel's fs/coredump.c for the default filter, except for
// anonymous memory that the program may use and has not touched. That memory is known to be
// zero, and the kernel's core does not have it.
func keepOf(a *procmaps.Area) keep {
	shared := a.Shared() || a.Has("sh")
	switch {
	case a.Path == "[vdso]":
		return keepAll
	case a.Path == "[vsyscall]" || a.Has("dd") || a.Has("io") || a.Has("pf"):
		return keepNothing
	case a.Has("ht"):
		if shared {
			return keepNothing
		}
		return keepAll
	case shared:
		// The file of a memfd or of anonymous memory has no name left.
		if strings.HasSuffix(a.Path, " (deleted)") {
			return keepAll
		}
		return keepNothing
	case a.Inode == 0 && (a.Anonymous || a.Perms[:3] != "---"):
		return keepTouched
	case a.Anonymous:
		return keepAll
	case a.Inode != 0 && a.Offset == 0 && a.Perms[0] == 'r':
		return keepHeader
	}
	return keepNothing
}

// segments returns the memory that the core has. The offsets are not known yet.
func (w *coreWriter) segments(areas []procmaps.Area) ([]coreSegment, error) {
	var list []coreSegment
	for i := range areas {
		a := &areas[i]
		if a.Path == "[vsyscall]" {
			continue // no part of the process's address space
		}
		s := coreSegment{Range: addresses(a), flags: elfFlags(a)}
		kept := keepOf(a)
		if within(addresses(a), w.options.Skip) {
			kept = keepNothing
		}
		switch kept {
		case keepHeader:
			s.size = w.headerSize(a.Start)
		case keepAll:
			s.size = uint64(a.End - a.Start)
		case keepTouched:
			pieces, err := touchedPieces(w.options.Threads[0].TID, s)
			if err != nil {
				return nil, err
			}
			list = append(list, pieces...)
			continue
		}
		list = append(list, s)
	}
	return list, nil
}

func within(r Range, list []Range) bool {
	for _, s := range list {
		if s.Start <= r.Start && r.End <= s.End {
			return true
		}
	}
	return false
}

// headerSize is the size of a page if the memory begins with an ELF header, which identifies
// the mapped object.
func (w *coreWriter) headerSize(at evidence.Addr) uint64 {
	var magic [len(elf.ELFMAG)]byte
	if _, err := w.memory.ReadAt(magic[:], int64(at)); err != nil || string(magic[:]) != elf.ELFMAG {
		return 0
	}
	return corePage
}

// untouchedGap is the size of untouched memory that gets no contents, not even a hole: a
// reservation of terabytes would make a file of terabytes.
const untouchedGap = 1 << 30

// touchedPieces cuts anonymous memory at large gaps where nothing was touched.
func touchedPieces(pid int, s coreSegment) ([]coreSegment, error) {
	touched, err := touchedRanges(pid, s.Range)
	if err != nil {
		return nil, err
	}
	var list []coreSegment
	add := func(end evidence.Addr, size uint64) {
		if end > s.Start {
			list = append(list, coreSegment{Range: Range{s.Start, end}, flags: s.flags, size: size, touched: s.touched})
			s.Start, s.touched = end, nil
		}
	}
	s.touched = []Range{}
	last := s.Start
	for _, r := range append(touched, Range{s.End, s.End}) {
		if r.Start-last >= untouchedGap {
			add(last, uint64(last-s.Start))
			add(r.Start, 0)
			s.touched = []Range{}
		}
		if r.Start < r.End {
			s.touched = append(s.touched, r)
		}
		last = r.End
	}
	add(s.End, uint64(s.End-s.Start))
	return list, nil
}

// pageScan is struct pm_scan_arg, pageRegion struct page_region of linux/fs.h.
type pageScan struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages uint64
	categoryInverted, categoryMask, categoryAny, returnMask uint64
}

type pageRegion struct{ start, end, categories uint64 }

const (
	pagemapScan     = 0xc0606610 // PAGEMAP_SCAN
	pageIsPresent   = 1 << 3
	pageIsSwapped   = 1 << 4
	pageIsZeroFrame = 1 << 5
)

// touchedRanges returns the pages of anonymous memory that may be other than zero. The kernel's
// scan (since 6.7) skips empty page tables at once.
func touchedRanges(pid int, r Range) ([]Range, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []Range
	regions := make([]pageRegion, 512)
	for at := r.Start; at < r.End; {
		scan := pageScan{
			size: uint64(unsafe.Sizeof(pageScan{})), start: uint64(at), end: uint64(r.End),
			vec: uint64(uintptr(unsafe.Pointer(&regions[0]))), vecLen: uint64(len(regions)),
			categoryInverted: pageIsZeroFrame, categoryMask: pageIsZeroFrame,
			categoryAny: pageIsPresent | pageIsSwapped, returnMask: pageIsPresent,
		}
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), pagemapScan, uintptr(unsafe.Pointer(&scan)))
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.ENOTTY || errno == unix.EINVAL:
			return readPagemap(f, r)
		case errno != 0:
			return nil, fmt.Errorf("pagemap at %v: %w", at, errno)
		}
		for _, x := range regions[:n] {
			list = join(list, Range{evidence.Addr(x.start), evidence.Addr(x.end)})
		}
		if scan.walkEnd <= uint64(at) {
			return nil, fmt.Errorf("pagemap at %v: the scan does not get on", at)
		}
		at = evidence.Addr(scan.walkEnd)
	}
	return list, nil
}

// readPagemap does the same with an entry of 8 bytes for every page.
func readPagemap(f io.ReaderAt, r Range) ([]Range, error) {
	const present, swapped = 1 << 63, 1 << 62
	var list []Range
	b := make([]byte, 1<<19)
	for at := r.Start; at < r.End; {
		n := min(int64(len(b)), int64(r.End-at)/corePage*8)
		if _, err := f.ReadAt(b[:n], int64(at)/corePage*8); err != nil {
			return nil, fmt.Errorf("pagemap at %v: %w", at, err)
		}
		for entry := range slices.Chunk(b[:n], 8) {
			if binary.LittleEndian.Uint64(entry)&(present|swapped) != 0 {
				list = join(list, Range{at, at + corePage})
			}
			at += corePage
		}
	}
	return list, nil
}

// join appends a range, and merges it with the last one if it begins where that ends.
func join(list []Range, r Range) []Range {
	if last := len(list) - 1; last >= 0 && list[last].End == r.Start {
		list[last].End = r.End
		return list
	}
	return append(list, r)
}
