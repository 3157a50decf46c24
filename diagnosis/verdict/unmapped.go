package verdict

import (
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
	"diagnose/staticscan"
)

// mappingLife is what the log tells of the memory at one address.
type mappingLife struct {
	addr evidence.Addr
	// start and end are the last mapping there that the log has; end is 0 if there is none.
	start, end evidence.Addr
	// call is the system call that took the memory away, an event of a thread; empty: it is still there.
	call    string
	thread  uint32
	ordinal uint64
}

// note takes a change, which is later than those before.
func (l *mappingLife) note(e *eventlog.Event, m *eventlog.MemoryChange) {
	end := m.Addr + evidence.Addr(m.Size)
	if end < m.Addr {
		return
	}
	switch {
	case m.Grown > 0:
		if l.end > 0 && l.start == m.Addr && l.call == "" {
			l.end = max(l.end, m.Addr+evidence.Addr(m.Grown))
		} else if to := m.Addr + evidence.Addr(m.Grown); l.addr >= m.Addr && l.addr < to {
			l.start, l.end, l.call = m.Addr, to, ""
		}
	case m.Whole:
		if l.end > 0 && l.start == m.Addr && l.call == "" {
			l.call, l.thread, l.ordinal = m.Call, e.Thread, e.Ordinal
		}
	case l.addr < m.Addr || l.addr >= end:
	case m.Gone:
		if l.end > 0 && l.call == "" {
			l.call, l.thread, l.ordinal = m.Call, e.Thread, e.Ordinal
		}
	default:
		l.start, l.end, l.call = m.Addr, end, ""
	}
}

// lifeOf reads the log; an event that cannot be read ends it with an error.
func lifeOf(log *eventlog.Log, addr evidence.Addr) (*mappingLife, error) {
	life := &mappingLife{addr: addr}
	for e, err := range log.Ordered() {
		if err != nil {
			return nil, err
		}
		for _, m := range e.MemoryChanges() {
			life.note(e, &m)
		}
	}
	return life, nil
}

// unmapped is the cause of a fault at memory that a system call of the run took away, of a pointer that leads into what had
// been mapped there; nil: it is no such fault. That the pointer is of that mapping is a rule: a wild one may lead there, too.
func (t *tracedCauses) unmapped(v *victim) *evidence.Cause {
	f := &t.in.Case.Failure
	if f.Kind != evidence.UnmappedAddress && f.Kind != evidence.WildPointer || f.Fault == nil || f.Site == nil || v.damaged() || v.value == nil {
		return nil
	}
	life, err := lifeOf(t.rec.Log, f.Fault.Addr)
	if err != nil || life.call == "" || evidence.Addr(*v.value) < life.start || evidence.Addr(*v.value) >= life.end {
		return nil
	}
	site, err := t.moments.calledAt(life)
	if err != nil || site == nil {
		return nil
	}
	return &evidence.Cause{Kind: evidence.CauseUseAfterFree, Variable: v.name, Site: site, Proof: evidence.Inferred,
		Summary: fmt.Sprintf("%s %s, which %s still uses", siteText(site), endOfMemory(life.call), siteText(f.Site)),
		Story: []evidence.CauseStep{
			t.exact.step(fmt.Sprintf("%s ended the life of the memory at %v, by %s", siteText(site), life.start, life.call), site),
			t.exact.step(siteText(f.Site)+" uses it", f.Site)}}
}

// calledAt is the program's own place from which a system call was made.
func (m *moments) calledAt(life *mappingLife) (site *evidence.Site, err error) {
	at := evidence.Moment{Thread: life.thread, Ordinal: life.ordinal}
	err = m.standAt(at, func(_ *replay.Stopped, p *image.Process, t *image.Thread) error {
		const frames = 64
		in := staticscan.Input{Process: p, Thread: t, Frames: unwind.New(p).Walk(t, frames).Frames}
		own := staticscan.OwnFrame(in)
		if own < 0 {
			return nil
		}
		calls := p.Symbolize(in.Frames[own].PC(), in.Frames[own].Lookup)
		if i := slices.IndexFunc(calls, func(c image.SymbolizedCall) bool { return !image.LibraryCode(&c.Site) }); i >= 0 {
			s := calls[i].Site
			site = &s
		}
		return nil
	})
	return site, err
}
