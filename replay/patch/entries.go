package patch

import (
	"cmp"
	"encoding/binary"
	"slices"

	"diagnose/image/x86"
)

// EntrySearch collects the addresses inside of spans, except for their first byte, to which code
// may lead: a jump or call, an address that code takes, an entry of a switch's table. The caller
// must add the addresses to which handlers return and at which threads leave the engine.
type EntrySearch struct {
	spans []span // in ascending order, not adjacent
	found []uint64
}

// NewEntrySearch returns a search near the pcs, which are in ascending order.
func NewEntrySearch(pcs ...uint64) *EntrySearch {
	s := &EntrySearch{}
	for _, pc := range pcs {
		low, high := pc-Reach, pc+Reach
		if n := len(s.spans); n > 0 && s.spans[n-1].end >= low {
			s.spans[n-1].end = high
		} else {
			s.spans = append(s.spans, span{low, high})
		}
	}
	return s
}

// Add adds an address, if it is inside of a span.
func (s *EntrySearch) Add(a uint64) {
	i, _ := slices.BinarySearchFunc(s.spans, a, func(x span, a uint64) int { return cmp.Compare(x.end, a+1) })
	if i < len(s.spans) && a > s.spans[i].start {
		s.found = append(s.found, a)
	}
}

// Sorted returns the addresses found, in ascending order.
func (s *EntrySearch) Sorted() []uint64 {
	slices.Sort(s.found)
	return slices.Compact(s.found)
}

// LongJumps treats every byte as the start of a jump, call or lea with 32 bits of displacement.
// Bytes that are none of these hardly ever lead into so small a span.
func (s *EntrySearch) LongJumps(text []byte, base uint64) {
	for i := 0; i+6 <= len(text); i++ {
		n := 1
		switch c := text[i]; {
		case c == 0xe8 || c == 0xe9:
		case c == 0x0f && text[i+1]&0xf0 == 0x80, c == 0x8d && text[i+1]&0xc7 == 5:
			n = 2
		default:
			continue
		}
		s.Add(base + uint64(i+n+4) + uint64(int64(int32(binary.LittleEndian.Uint32(text[i+n:])))))
	}
}

// ShortJumps decodes the code around pc, the start of an instruction, for jumps with 8 bits of
// displacement. It returns false if decoding from before pc does not arrive at it.
func (s *EntrySearch) ShortJumps(text []byte, base, pc uint64) bool {
	const reach = Reach + 130
	at := int(pc - base)
	after, _ := sweep(text, base, at, min(at+reach, len(text)))
	for i := range after {
		s.target(&after[i])
	}
	// Most of the sweeps find the true instructions.
	votes, arrived := map[uint64]int{}, 0
	d := newDecoded(text, base, max(at-reach-Lead, 0), at)
	for i := range sweeps {
		list, arrives := d.sweep(i)
		if !arrives {
			continue
		}
		arrived++
		for j := range list {
			if list[j].HasTarget {
				votes[list[j].Target]++
			}
		}
	}
	for target, n := range votes {
		if 2*n >= arrived {
			s.Add(target)
		}
	}
	return arrived > 0
}

func (s *EntrySearch) target(inst *x86.Inst) {
	if inst.HasTarget {
		s.Add(inst.Target)
	}
}

// Tables searches for addresses, and for tables of at most 4 KiB that have offsets of code from
// their own start. isCode says of an address whether a table may lead there.
func (s *EntrySearch) Tables(data []byte, base uint64, isCode func(uint64) bool) {
	const table = 4096
	for i := 0; i+8 <= len(data); i += 8 {
		s.Add(binary.LittleEndian.Uint64(data[i:]))
	}
	// Compilers do not make tables of fewer entries.
	const entries = 4
	offset := func(i int) int64 { return int64(int32(binary.LittleEndian.Uint32(data[i:]))) }
	for i := 0; i+4 <= len(data); i += 4 {
		at, by := int64(base)+int64(i), offset(i)
		// The spans that a table with this entry can lead to.
		lowest := uint64(max(at-table, int64(base)) + by)
		first, _ := slices.BinarySearchFunc(s.spans, lowest, func(x span, a uint64) int { return cmp.Compare(x.end, a+1) })
		for _, x := range s.spans[first:] {
			first, last := max(at-table, int64(base), int64(x.start)+1-by), min(at, int64(x.end)-1-by)
			if int64(x.start)+1-by > at {
				break
			}
			for t := (first + 3) &^ 3; t <= last; t += 4 {
				from := int(t - int64(base))
				j := from
				for ; j+4 <= len(data) && j-from < table; j += 4 {
					if !isCode(uint64(t + offset(j))) {
						break
					}
				}
				if j > i && j-from >= 4*entries {
					s.Add(uint64(t + by))
				}
			}
		}
	}
}
