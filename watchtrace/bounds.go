package watchtrace

import (
	"diagnose/evidence"
	"diagnose/replay"
)

// bounds finds where Options.From is among the hits of a replay.
type bounds struct {
	// begun: the replay has passed From.
	begun bool
	// since is the number of the first hit after it, next that of the next hit.
	since, next uint64
}

// bound ends a replay at Options.Until. The bounds are to see each of its hits.
func (p *Plan) bound(o *replay.WatchRequest) *bounds {
	b := &bounds{begun: p.opts.From == nil}
	if p.opts.From != nil {
		o.Hooks = append(o.Hooks, replay.Hook{At: *p.opts.From, Do: func(*replay.Stopped) error {
			b.begun, b.since = true, b.next
			return nil
		}})
	}
	if p.opts.Until != nil {
		o.Hooks = append(o.Hooks, replay.Hook{At: *p.opts.Until, Do: func(*replay.Stopped) error { return replay.ErrEnough }})
	}
	return b
}

func (b *bounds) see(h *replay.Hit) { b.next = h.Number + 1 }

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
