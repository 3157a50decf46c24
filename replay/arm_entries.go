package replay

import (
	"diagnose/agent"
	"diagnose/replay/patch"
)

// entries returns the addresses near pc that code may jump to, in ascending order, and the text
// around it. known is false if they cannot be determined.
func (b *breakpoints) entries(t *thread, pc uint64) (list []uint64, text []byte, base uint64, known bool) {
	s := patch.NewEntrySearch(pc)
	text, base, known = searchEntries(b.c.process, s, pc)
	if !known || b.resumed(t, s) != nil {
		return nil, nil, 0, false
	}
	return s.Sorted(), text, base, true
}

// searchEntries searches the object that has the code at pcs, and returns that code.
func searchEntries(p *process, s *patch.EntrySearch, pcs ...uint64) (text []byte, base uint64, known bool) {
	maps, err := readMaps(p.pid)
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
		if _, err := p.memory.ReadAt(bytes, int64(m.start)); err != nil {
			return nil, 0, false
		}
		if m == own {
			text, base = bytes, m.start
			for _, pc := range pcs {
				if !s.ShortJumps(text, base, pc) {
					return nil, 0, false
				}
			}
		}
		if m.perms[2] == 'x' {
			s.LongJumps(bytes, m.start)
		} else {
			s.Tables(bytes, m.start, own.start, own.end)
		}
	}
	return text, base, true
}

// resumed adds the addresses where threads in the engine continue, and where the handlers of other
// threads return. A thread's own handler returns by an event, which does not occur before the
// thread is at its place.
func (b *breakpoints) resumed(t *thread, s *patch.EntrySearch) error {
	for p := range b.placedAt {
		if p.thread != t.index {
			s.Add(p.pc)
		}
	}
	for _, other := range b.c.threads {
		if other.index == 0 {
			continue
		}
		if other.final != nil {
			s.Add(other.final.regs.Rip)
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
		s.Add(f.RIP)
		s.Add(f.Origin)
	}
	return nil
}
