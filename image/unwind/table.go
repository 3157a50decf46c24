package unwind

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
)

// searchTable is the binary search table of .eh_frame_hdr (LSB 5.0 core,
// section 10.6.2).
type searchTable struct {
	addr    uint64 // of the section
	data    []byte // pairs of (initial location, FDE address), relative to addr
	ehFrame uint64 // address of .eh_frame

	checked, inOrder bool
}

// encodingTable is DW_EH_PE_datarel | DW_EH_PE_sdata4, the one encoding that
// linkers use for the table.
const encodingTable = 0x3b

// parseHeader reads .eh_frame_hdr, which is at addr.
func parseHeader(data []byte, addr uint64) (*searchTable, error) {
	r := reader{data: data}
	version, ptrEncoding, countEncoding, tableEncoding := r.u8(), r.u8(), r.u8(), r.u8()
	if r.err != nil {
		return nil, fmt.Errorf(".eh_frame_hdr: %w", r.err)
	}
	if version != 1 {
		return nil, fmt.Errorf(".eh_frame_hdr at %#x: version %d", addr, version)
	}
	t := &searchTable{addr: addr}
	var err error
	if t.ehFrame, err = r.pointer(ptrEncoding, addr); err != nil {
		return nil, fmt.Errorf(".eh_frame_hdr: pointer to .eh_frame: %w", err)
	}
	if countEncoding == peOmit || tableEncoding != encodingTable {
		return t, nil
	}
	count, err := r.pointer(countEncoding, addr)
	if err != nil {
		return nil, fmt.Errorf(".eh_frame_hdr: count: %w", err)
	}
	if count > uint64(r.left())/8 {
		return nil, fmt.Errorf(".eh_frame_hdr at %#x: %d entries in %d bytes", addr, count, r.left())
	}
	t.data = r.take(8 * count)
	return t, r.err
}

func (t *searchTable) len() int { return len(t.data) / 8 }

func (t *searchTable) entryAt(i int) (begin, fdeAddr uint64) {
	b := t.data[8*i:]
	begin = t.addr + uint64(int64(int32(binary.LittleEndian.Uint32(b))))
	return begin, t.addr + uint64(int64(int32(binary.LittleEndian.Uint32(b[4:]))))
}

// entryFor returns the FDE of the last function that begins at or before pc.
func (t *searchTable) entryFor(pc uint64) (begin, fdeAddr uint64, ok bool) {
	i := sort.Search(t.len(), func(i int) bool {
		begin, _ := t.entryAt(i)
		return begin > pc
	})
	if i == 0 {
		return 0, 0, false
	}
	begin, fdeAddr = t.entryAt(i - 1)
	return begin, fdeAddr, true
}

// sorted reports whether the table is in order; otherwise a failed search
// proves nothing. It checks the whole table once.
func (t *searchTable) sorted() bool {
	if !t.checked {
		t.checked, t.inOrder = true, true
		for i, last := 0, uint64(0); i < t.len() && t.inOrder; i++ {
			begin, _ := t.entryAt(i)
			t.inOrder, last = begin >= last, begin
		}
	}
	return t.inOrder
}

// span is one FDE found by a scan.
type span struct{ begin, end, addr uint64 }

// maxScanned bounds the entries of a scanned section, terminators and damaged
// ones among them: the holes of a sparse file are full of terminators.
const maxScanned = 1 << 22

// scanSection lists the FDEs of a section without a search table, by their
// first address. Entries after a damaged one are lost, and the error says so.
func scanSection(a area, f format, start, size uint64) ([]span, error) {
	var list []span
	var failed error
	cies := map[uint64]*cie{}
	_, inMemory := a.(*memoryArea)
	scanned := 0
	for addr := start; addr-start < size; {
		if scanned++; scanned > maxScanned {
			return sortSpans(list), fmt.Errorf("%s: more than %d entries; those from %#x on are not read", a.name(), maxScanned, addr)
		}
		e, err := readEntry(a, addr)
		if errors.Is(err, errTerminator) && !inMemory {
			// ld -r concatenates sections with a terminator each.
			addr += 4
			continue
		}
		if errors.Is(err, errTerminator) {
			break
		}
		if err != nil {
			return sortSpans(list), err
		}
		addr += e.size
		if e.isCIE(f) {
			continue
		}
		c, err := cieOf(a, &e, f, start, cies)
		if err != nil {
			failed = err
			continue
		}
		fd, err := parseFDE(a, &e, c)
		if err != nil {
			failed = err
			continue
		}
		if fd.end > fd.begin {
			list = append(list, span{fd.begin, fd.end, e.addr})
		}
	}
	return sortSpans(list), failed
}

func sortSpans(list []span) []span {
	sort.SliceStable(list, func(i, j int) bool { return list[i].begin < list[j].begin })
	return list
}

// findSpan returns the FDE that covers pc.
func findSpan(list []span, pc uint64) (span, bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].begin > pc })
	// Functions do not overlap in sound sections; a few steps back suffice for
	// zero-sized and duplicate ones.
	for back := 1; back <= 4 && i-back >= 0; back++ {
		if s := list[i-back]; pc < s.end {
			return s, true
		}
	}
	return span{}, false
}

// cieOf reads an FDE's CIE.
func cieOf(a area, e *entry, f format, base uint64, known map[uint64]*cie) (*cie, error) {
	addr := e.cieAddr(f, base)
	if c, ok := known[addr]; ok {
		return c, nil
	}
	ce, err := readEntry(a, addr)
	if err != nil {
		return nil, fmt.Errorf("the CIE of %s at %#x: %w", a.name(), e.addr, err)
	}
	if !ce.isCIE(f) {
		return nil, fmt.Errorf("%s at %#x: no CIE at %#x", a.name(), e.addr, addr)
	}
	c, err := parseCIE(a, &ce, f)
	if err != nil {
		return nil, err
	}
	known[addr] = c
	return c, nil
}
