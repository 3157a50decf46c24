package replay

import (
	"diagnose/agent"
	"diagnose/replay/patch"
	"diagnose/replay/tracee"
)

// entries returns the addresses near pc that code may jump to, in ascending order, and the text
// around it. known is false if they cannot be determined.
func (b *breakpoints) entries(t *tracee.Thread, pc uint64) (list []uint64, text []byte, base uint64, known bool) {
	s := patch.NewEntrySearch(pc)
	text, base, known = searchEntries(b.c.Process, s, pc)
	if !known || b.resumed(t, s) != nil {
		return nil, nil, 0, false
	}
	return s.Sorted(), text, base, true
}

// searchEntries searches the object that has the code at pcs, and returns that code.
func searchEntries(p *tracee.Process, s *patch.EntrySearch, pcs ...uint64) (text []byte, base uint64, known bool) {
	maps, err := tracee.ReadMaps(p.PID)
	own := maps.Containing(pcs[0])
	const most = 64 << 20
	if err != nil || own == nil || own.Size() > most {
		return nil, 0, false
	}
	for i := range maps {
		m := &maps[i]
		// Instructions that the recorder moved are in memory without a name.
		moved := m.Perms[2] == 'x' && m.Path == ""
		if m.Perms[0] != 'r' || m.Size() > most || m != own && !moved && (m.Perms[1] == 'w' || m.Path == "" || m.Path != own.Path) {
			continue
		}
		bytes := make([]byte, m.Size())
		if _, err := p.Memory.ReadAt(bytes, int64(m.Start)); err != nil {
			return nil, 0, false
		}
		if m == own {
			text, base = bytes, m.Start
			for _, pc := range pcs {
				if !s.ShortJumps(text, base, pc) {
					return nil, 0, false
				}
			}
		}
		if m.Perms[2] == 'x' {
			s.LongJumps(bytes, m.Start)
		} else {
			s.Tables(bytes, m.Start, own.Start, own.End)
		}
	}
	return text, base, true
}

// resumed adds the addresses where threads in the engine continue, and where the handlers of other
// threads return. A thread's own handler returns by an event, which does not occur before the
// thread is at its place.
func (b *breakpoints) resumed(t *tracee.Thread, s *patch.EntrySearch) error {
	for p := range b.placedAt {
		if p.thread != t.Index {
			s.Add(p.pc)
		}
	}
	for _, other := range b.c.Threads {
		if other.Index == 0 {
			continue
		}
		if other.Final != nil {
			s.Add(other.Final.Regs.Rip)
		}
		r, err := b.c.ReadThread(other.Index)
		if err != nil {
			return err
		}
		if r.Inside == 0 {
			continue
		}
		f, err := tracee.ReadStruct[agent.RawFrame](b.c.Memory, r.Inside)
		if err != nil {
			return err
		}
		s.Add(f.RIP)
		s.Add(f.Origin)
	}
	return nil
}
