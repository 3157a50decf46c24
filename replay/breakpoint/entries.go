package breakpoint

import (
	"diagnose/agent"
	"diagnose/replay/patch"
	"diagnose/replay/tracee"
)

// entries returns the addresses near pc that code may jump to, in ascending order, and the text
// around it. known is false if they cannot be determined.
func (b *Breakpoints) entries(t *tracee.Thread, pc uint64) (list []uint64, text []byte, base uint64, known bool) {
	s := patch.NewEntrySearch(pc)
	text, base, known = b.process.SearchEntries(s, pc)
	if !known || b.resumed(t, s) != nil {
		return nil, nil, 0, false
	}
	return s.Sorted(), text, base, true
}

// resumed adds the addresses where threads in the engine continue, and where the handlers of other
// threads return. A thread's own handler returns by an event, which does not occur before the
// thread is at its place.
func (b *Breakpoints) resumed(t *tracee.Thread, s *patch.EntrySearch) error {
	for p := range b.placedAt {
		if p.thread != t.Index {
			s.Add(p.pc)
		}
	}
	for _, other := range b.process.Threads {
		if other.Index == 0 {
			continue
		}
		if other.Final != nil {
			s.Add(other.Final.Regs.Rip)
		}
		r, err := b.process.ReadThread(other.Index)
		if err != nil {
			return err
		}
		if r.Inside == 0 {
			continue
		}
		f, err := tracee.ReadStruct[agent.RawFrame](b.process.Memory, r.Inside)
		if err != nil {
			return err
		}
		s.Add(f.RIP)
		s.Add(f.Origin)
	}
	return nil
}
