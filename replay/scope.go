package replay

import (
	"errors"
	"reflect"
	"slices"

	"diagnose/evidence"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/tracee"
)

// scope is what decides where a replay may begin.
type scope struct {
	rec    *record.Recording
	timing record.Timing
	// found are the preemptions that the replay makes; nil: it makes none.
	found *record.Found
	// free: it is a FreeRequest, whose breaks are those of the key (Carried.Of).
	free bool
	key  any
	// first are the moments before which the request observes nothing; none: it observes the end alone.
	first []evidence.Moment
	// hits is Watching.Earlier; nil: no words are watched.
	hits func(*Checkpoint) (hits uint64, known bool)
}

// equals reports whether two replays execute the same.
func (b *scope) equals(x *scope) bool {
	return b.rec == x.rec && b.timing == x.timing && b.free == x.free && b.key == x.key && reflect.DeepEqual(b.found, x.found)
}

// mayBegin reports whether a checkpoint is before all that the request observes.
func (b *scope) mayBegin(x *Checkpoint) bool {
	if slices.ContainsFunc(b.first, func(m evidence.Moment) bool { return !x.Before(m) }) {
		return false
	}
	if b.hits == nil {
		return true
	}
	_, known := b.hits(x)
	return known
}

// scope says where a request's replay may begin; nil: at the start of the recording alone.
func (p *parts) scope(rec *record.Recording) (*scope, error) {
	w := &p.watching
	switch {
	case p.from != nil, p.free != nil && !p.free.mayBeginLater(), p.debug != nil, p.probing != nil: // from the start, or where the request says
		return nil, nil
	case p.schedule != nil, p.Preemptions != nil: // another run
		return nil, nil
	case p.Echo != nil, len(w.Watches) > 0 && w.Earlier == nil, w.Backend == BackendProbe, w.Backend == BackendPages:
		return nil, nil
	}
	if len(w.Watches) > 0 && ptrace.DebugRegistersFire() != nil {
		return nil, nil
	}
	found, err := rec.Found()
	if err != nil {
		return nil, err
	}
	b := &scope{rec: rec, timing: p.Timing, found: found, free: p.free != nil}
	if b.timing == "" && found != nil && !b.free {
		b.timing = found.Timing
	}
	if b.timing == "" {
		if b.timing, err = rec.Timing(); err != nil {
			return nil, err
		}
	}
	if b.timing == "" {
		b.timing = firstTiming
	}
	if len(w.Watches) > 0 {
		b.hits = w.Earlier
	}
	for _, h := range p.Hooks {
		b.first = append(b.first, h.At)
	}
	if f := p.free; f != nil {
		for _, e := range f.edits {
			if !e.OnHit {
				b.first = append(b.first, e.At)
			}
		}
		if f.carried != nil {
			b.key = f.carried.Of
		}
	}
	if p.walk != nil {
		b.first = append(b.first, p.walk.At)
	}
	if p.step != nil {
		for thread, w := range p.step.Windows {
			b.first = append(b.first, evidence.Moment{Thread: thread, Ordinal: w.From})
		}
	}
	return b, nil
}

// mayBeginLater reports whether the replay executes the recorded run up to the first of its edits, and the arrivals that its breaks would
// have seen before are known.
func (f *freePart) mayBeginLater() bool {
	delays := func(e Edit) bool { return e.Kind == EditDelaySignal }
	changes := func(b Break) bool { return b.Changes }
	return !slices.ContainsFunc(f.edits, delays) && !slices.ContainsFunc(f.breaks, changes) && (len(f.breaks) == 0 || f.carried != nil)
}

// leaves reports whether the request's replay may leave checkpoints before what it observes. A copy of a process that is watched would be
// watched as well.
func (p *parts) leaves() bool {
	return len(p.watching.Watches) == 0 && (p.free == nil || len(p.free.edits) == 0)
}

// leaving has what a replay leaves for later ones.
type leaving struct {
	*scope
	kept *Kept
	// from is where the replay begins; nil: at the start.
	from *kept
	// positions are those at which it is to leave a checkpoint; nil: they were not chosen yet.
	positions []uint64
	left      []*kept
}

// hooks returns the hooks at which a replay leaves checkpoints, before the first of the request's own. Only the first replay of a request
// leaves some.
func (l *leaving) hooks(schedule eventlog.Schedule, timing record.Timing) (hooks []Hook) {
	if l == nil || timing != l.timing || l.positions != nil {
		return nil
	}
	after := uint64(0)
	if l.from != nil {
		after = l.from.position
	}
	total, first := uint64(0), positionOf(schedule, l.first)
	for _, n := range schedule.Events() {
		total += n
	}
	l.positions = l.kept.reserve(l.scope, after, first, total)
	left, done, position := l.positions, map[uint32]uint64{}, uint64(0)
	for _, turn := range schedule {
		end := position + uint64(turn.Events)
		for ; len(left) > 0 && left[0] <= end; left = left[1:] {
			at := evidence.Moment{Thread: turn.Thread, Ordinal: done[turn.Thread] + left[0] - position}
			hooks = append(hooks, Hook{At: at, keep: left[0]})
		}
		done[turn.Thread] += uint64(turn.Events)
		position = end
	}
	return hooks
}

// positionOf returns the position right after the event of the first of some moments. Without any it is after all events.
func positionOf(schedule eventlog.Schedule, moments []evidence.Moment) uint64 {
	first, done, position := ^uint64(0), map[uint32]uint64{}, uint64(0)
	for _, turn := range schedule {
		events := uint64(turn.Events)
		for _, m := range moments {
			if before := done[m.Thread]; m.Thread == turn.Thread && m.Ordinal > before && m.Ordinal <= before+events {
				first = min(first, position+m.Ordinal-before)
			}
		}
		if first != ^uint64(0) {
			break
		}
		done[turn.Thread] += events
		position += events
	}
	return first
}

// keepHere leaves a checkpoint where a thread has done the event of a hook, and answers the engine's question on it. Without the
// checkpoint later replays take longer, so it is no error if the process cannot be copied or there is no room.
func (c *controller) keepHere(t *tracee.Thread, s *tracee.SignalStop, position uint64) error {
	answered := s.Regs
	answered.Rax, answered.Orig_rax = 1, ^uint64(0)
	if err := errors.Join(ptrace.SetRegisters(t.TID, &answered), c.StopAll()); err != nil {
		return err
	}
	if err := c.leaveCheckpoint(t, position); err != nil {
		return err
	}
	return c.goOn()
}

func (c *controller) leaveCheckpoint(t *tracee.Thread, position uint64) error {
	c.watch.pause()
	defer c.watch.resume()
	s, err := c.stopped(t)
	if err != nil {
		return err
	}
	defer s.close()
	l := c.request.leaving
	if !s.RoomFor(l.kept.Counts().Checkpoints + len(l.left) + 1) {
		return nil
	}
	x, err := s.Checkpoint()
	var impossible *NoCheckpointError
	if errors.As(err, &impossible) {
		return nil
	}
	if err != nil {
		return err
	}
	l.left = append(l.left, &kept{Checkpoint: x, of: l.scope, position: position})
	return nil
}
