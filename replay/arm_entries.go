package replay

import (
	"cmp"
	"encoding/binary"
	"slices"

	"diagnose/agent"
	"diagnose/image/x86"
)

// entrySearch collects where something may lead inside of spans, their first byte
// not included: a jump or call, the address that code takes, an entry of a
// switch's table. A handler that returns and a thread that leaves the engine are
// the caller's to know.
type entrySearch struct {
	spans []span // in ascending order, apart from each other
	found []uint64
}

// newEntrySearch is for what is near pcs, which are in ascending order.
func newEntrySearch(pcs ...uint64) *entrySearch {
	s := &entrySearch{}
	for _, pc := range pcs {
		low, high := pc-windowReach, pc+windowReach
		if n := len(s.spans); n > 0 && s.spans[n-1].end >= low {
			s.spans[n-1].end = high
		} else {
			s.spans = append(s.spans, span{low, high})
		}
	}
	return s
}

func (s *entrySearch) add(a uint64) {
	i, _ := slices.BinarySearchFunc(s.spans, a, func(x span, a uint64) int { return cmp.Compare(x.end, a+1) })
	if i < len(s.spans) && a > s.spans[i].start {
		s.found = append(s.found, a)
	}
}

func (s *entrySearch) sorted() []uint64 {
	slices.Sort(s.found)
	return slices.Compact(s.found)
}

// longJumps takes every byte for the start of a jump, call or lea with 32 bits
// of displacement: hardly any of those that are none lead to so few bytes.
func (s *entrySearch) longJumps(text []byte, base uint64) {
	for i := 0; i+6 <= len(text); i++ {
		n := 1
		switch c := text[i]; {
		case c == 0xe8 || c == 0xe9:
		case c == 0x0f && text[i+1]&0xf0 == 0x80, c == 0x8d && text[i+1]&0xc7 == 5:
			n = 2
		default:
			continue
		}
		s.add(base + uint64(i+n+4) + uint64(int64(int32(binary.LittleEndian.Uint32(text[i+n:])))))
	}
}

// shortJumps decodes the code around pc, an instruction's start, for jumps with 8
// bits of displacement; false: nothing that was decoded before it leads to it.
func (s *entrySearch) shortJumps(text []byte, base, pc uint64) bool {
	const reach = windowReach + 130
	at := int(pc - base)
	behind, _ := sweep(text, base, at, min(at+reach, len(text)))
	for i := range behind {
		s.target(&behind[i])
	}
	// Most of the sweeps find the true instructions.
	votes, arrived := map[uint64]int{}, 0
	d := newDecoded(text, base, max(at-reach-windowLead, 0), at)
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
			s.add(target)
		}
	}
	return arrived > 0
}

func (s *entrySearch) target(inst *x86.Inst) {
	if inst.HasTarget {
		s.add(inst.Target)
	}
}

// tables looks for addresses, and for tables of at most 4 KiB with offsets of
// code from their own start.
func (s *entrySearch) tables(data []byte, base uint64, code span) {
	const table = 4096
	for i := 0; i+8 <= len(data); i += 8 {
		s.add(binary.LittleEndian.Uint64(data[i:]))
	}
	// Compilers make no tables of fewer entries.
	const entries = 4
	offset := func(i int) int64 { return int64(int32(binary.LittleEndian.Uint32(data[i:]))) }
	for i := 0; i+4 <= len(data); i += 4 {
		at, by := int64(base)+int64(i), offset(i)
		// Of the spans those that a table which has this entry leads to.
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
					if a := uint64(t + offset(j)); a < code.start || a >= code.end {
						break
					}
				}
				if j > i && j-from >= 4*entries {
					s.add(uint64(t + by))
				}
			}
		}
	}
}

// entries are where something may lead near pc, in ascending order, and the
// text around it; false: that cannot be known.
func (b *breakpoints) entries(t *thread, pc uint64) (list []uint64, text []byte, base uint64, known bool) {
	s := newEntrySearch(pc)
	text, base, known = s.search(b.c, pc)
	if !known || b.resumed(t, s) != nil {
		return nil, nil, 0, false
	}
	return s.sorted(), text, base, true
}

// search looks through the object that has the code at pcs, and returns that code.
func (s *entrySearch) search(c *controller, pcs ...uint64) (text []byte, base uint64, known bool) {
	maps, err := readMaps(c.pid)
	own := maps.at(pcs[0])
	const most = 64 << 20
	if err != nil || own == nil || own.size() > most {
		return nil, 0, false
	}
	for i := range maps {
		m := &maps[i]
		// Instructions that the recorder moved are in memory without a name.
		moved := m.perms[2] == 'x' && m.path == ""
		if m.perms[0] != 'r' || m.size() > most || m != own && !moved && (m.perms[1] == 'w' || m.path == "" || m.path != own.path) {
			continue
		}
		bytes := make([]byte, m.size())
		if _, err := c.memory.ReadAt(bytes, int64(m.start)); err != nil {
			return nil, 0, false
		}
		if m == own {
			text, base = bytes, m.start
			for _, pc := range pcs {
				if !s.shortJumps(text, base, pc) {
					return nil, 0, false
				}
			}
		}
		if m.perms[2] == 'x' {
			s.longJumps(bytes, m.start)
		} else {
			s.tables(bytes, m.start, own.span)
		}
	}
	return text, base, true
}

// resumed adds the addresses where threads in the engine continue, and where the handlers of other
// threads return. A thread's own handler returns by an event, which does not occur before the
// thread is at its place.
func (b *breakpoints) resumed(t *thread, s *entrySearch) error {
	for p := range b.placedAt {
		if p.thread != t.index {
			s.add(p.pc)
		}
	}
	for _, other := range b.c.threads {
		if other.index == 0 {
			continue
		}
		if other.final != nil {
			s.add(other.final.regs.Rip)
		}
		r, err := b.c.rthread(other.index)
		if err != nil {
			return err
		}
		if r.Inside == 0 {
			continue
		}
		f, err := readStruct[agent.RawFrame](b.c.memory, r.Inside)
		if err != nil {
			return err
		}
		s.add(f.RIP)
		s.add(f.Origin)
	}
	return nil
}
