package verdict

import (
	"encoding/binary"

	"diagnose/evidence"
	"diagnose/image/unwind"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/staticscan"
)

// goodValue is what a passing run had in the place of the bad value.
type goodValue struct {
	value  uint64
	size   int
	mapped bool // an address that the run had memory at
}

// mostLooks bounds how often an instruction of a passing run is looked at: each time
// costs a look at the code.
const mostLooks = 200

// eachTime looks at an instruction of the passing runs until one of them has told
// something else than the bad value, which is the last that it told.
func (ce *chainExperiments) eachTime(pc evidence.Addr, bad *uint64, look func(*replay.Stopped) (*goodValue, error)) (*goodValue, error) {
	for _, rec := range ce.chain.Passing {
		found, err := ce.lastOf(rec, pc, bad, look)
		if found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

func (ce *chainExperiments) lastOf(rec *record.Recording, pc evidence.Addr, bad *uint64, look func(*replay.Stopped) (*goodValue, error)) (found *goodValue, err error) {
	looks := 0
	at := replay.Break{PC: pc, Do: func(s *replay.Stopped) error {
		if looks++; looks > mostLooks {
			return replay.ErrBreakOver
		}
		v, err := look(s)
		if err == nil && v != nil && (bad == nil || v.value != *bad) {
			found = v
		}
		return err
	}}
	_, err = replay.Run(ce.chain.progress.ctx, rec, replay.FreeRequest{Common: replay.Common{Image: ce.chain.Image}, Breaks: []replay.Break{at}})
	return found, err
}

// passingValue is what an instruction reads in a passing run; nil if that is nowhere
// known.
func (ce *chainExperiments) passingValue(pc evidence.Addr) (*goodValue, error) {
	return ce.eachTime(pc, ce.chain.victim.value, func(s *replay.Stopped) (*goodValue, error) {
		p, err := s.Process()
		if err != nil {
			return nil, err
		}
		t := p.FailingThread()
		if t == nil {
			return nil, errNoThread
		}
		r, ok := staticscan.Read(staticscan.Input{Process: p, Thread: t, Frames: unwind.New(p).Walk(t, 1).Frames})
		size := r.Size
		if !ok || size < 1 || size > wordSize {
			return nil, nil
		}
		var b [wordSize]byte
		if n, err := s.ReadMemory(r.Addr, b[:size]); err != nil || n != size {
			return nil, nil // it may fault there: a handler may do the rest
		}
		v := goodValue{value: binary.LittleEndian.Uint64(b[:]), size: size}
		v.mapped = p.MappingAt(evidence.Addr(v.value)) != nil
		return &v, nil
	})
}

// passingStore is what the link's instruction stores in a passing run; nil if that is
// nowhere known.
func (ce *chainExperiments) passingStore(l *link) (*goodValue, error) {
	return ce.eachTime(l.access.PC, &l.access.New, func(s *replay.Stopped) (*goodValue, error) {
		if _, size, err := s.Stores(); err != nil || int(size) != int(l.access.Size) {
			return nil, nil // no store of the watched word
		}
		_, value, size, err := s.Stored()
		if err != nil {
			return nil, err
		}
		p, err := s.Process()
		if err != nil {
			return nil, err
		}
		return &goodValue{value: value, size: size, mapped: p.MappingAt(evidence.Addr(value)) != nil}, nil
	})
}

// usable reports whether a passing run's value means the same in the failing one: it is
// no address of what that run alone had on its heap or its stacks.
func (ce *chainExperiments) usable(v *goodValue) bool {
	at := evidence.Addr(v.value)
	return v.size < wordSize || !v.mapped && ce.chain.Process.MappingAt(at) == nil || ce.chain.Process.ModuleAt(at) != nil
}

// otherStored lets a store put there what it does in a passing run.
func (ce *chainExperiments) otherStored(l *link) []change {
	word := l.log.Variables[l.access.Variable].Address + evidence.Addr(l.access.Offset)
	if l.access.By != evidence.ByProgram || len(l.hits) != 1 || l.store.Width != int(l.access.Size) {
		return nil
	}
	good, err := ce.passingStore(l)
	if err != nil {
		ce.chain.progress.failedPart(err)
	}
	if good == nil || !ce.usable(good) {
		return nil
	}
	edit := replay.Edit{Kind: replay.EditStore, OnHit: true, Hit: l.hits[0], Addr: word, Value: good.value, Size: good.size}
	pass := l.plan.Passes[max(l.log.Variables[l.access.Variable].Pass-1, 0)]
	return []change{{what: "the value that " + where(&l.seen) + " stored replaced by that of a passing run",
		options: replay.FreeRequest{Watching: replay.Watching{Watches: pass.Watches}, Edits: []replay.Edit{edit}}}}
}
