package watchtrace

import (
	"diagnose/evidence"
	"diagnose/replay"
)

// bounds finds where Options.From is among the hits of a replay.
type bounds struct {
	// begun: the replay has passed From, when all threads had done so many events.
	begun    bool
	position uint64
	// since is the number of the first hit after it.
	since, next uint64
}

// bound ends a replay at Options.Until. The bounds are to see each of its hits.
func (p *Plan) bound(o *replay.WatchRequest) *bounds {
	b := &bounds{begun: p.opts.From == nil}
	if p.opts.From != nil {
		o.Hooks = append(o.Hooks, replay.Hook{At: *p.opts.From, Do: func(s *replay.Stopped) error {
			var err error
			b.begun, b.since = true, b.next
			b.position, err = s.Position()
			return err
		}})
	}
	if p.opts.Until != nil {
		o.Hooks = append(o.Hooks, replay.Hook{At: *p.opts.Until, Do: func(*replay.Stopped) error { return replay.ErrEnough }})
	}
	return b
}

// see notes a hit. One of a system call is held back for as long as the call may continue it, so that it comes after the hook of a
// moment right after the call.
func (b *bounds) see(h *replay.Hit) {
	b.next = h.Number + 1
	if b.position > 0 && b.since == h.Number && h.By == evidence.ByCall && h.Position <= b.position {
		b.since = b.next
	}
}

// first is the number of the first hit after From.
func (b *bounds) first() uint64 {
	if !b.begun {
		return b.next
	}
	return b.since
}

// Since reports whether an access of the log was made after Options.From.
func (p *Plan) Since(a *evidence.Access) bool {
	pass, found := p.passOf(a)
	return found && a.Hit >= p.Passes[pass].since
}
