package watchtrace

import (
	"cmp"
	"slices"

	"diagnose/evidence"
	"diagnose/replay"
)

// Earlier returns Watching.Earlier of a replay with the watches of a pass for some of its hits, by number; nil: all hits are needed. The log has the number of each hit, and how many
// events were done then; a checkpoint is right after an event.
func (p *Plan) Earlier(log *evidence.AccessLog, pass int, wanted []uint64) func(*replay.Checkpoint) (uint64, bool) {
	if p.Passes[pass].Known {
		return nil
	}
	var seen []*evidence.Access
	for i := range log.Accesses {
		if of, found := p.passOf(&log.Accesses[i]); found && of == pass {
			seen = append(seen, &log.Accesses[i])
		}
	}
	slices.SortFunc(seen, func(a, b *evidence.Access) int { return cmp.Compare(a.Hit, b.Hit) })
	return func(x *replay.Checkpoint) (hits uint64, known bool) {
		hits, known = hitsBefore(seen, x.Events)
		return hits, known && !slices.ContainsFunc(wanted, func(number uint64) bool { return number < hits })
	}
}

// hitsBefore returns how many hits of a replay were made before it had done so many events, from the accesses of its log in the order of
// their hits. known is false if the log does not say it, or if a replay that begins there would number the rest otherwise: it cannot see a
// change that was noticed at an access after it, and made before.
func hitsBefore(seen []*evidence.Access, events uint64) (hits uint64, known bool) {
	after := slices.IndexFunc(seen, func(a *evidence.Access) bool { return a.Position >= events })
	if after < 0 {
		return 0, false
	}
	if after > 0 {
		hits = seen[after-1].Hit + 1
	}
	unclear := func(a *evidence.Access) bool {
		return a.Position < events || a.By == evidence.ByCall && a.PC == 0
	}
	return hits, seen[after].Hit == hits && !slices.ContainsFunc(seen[after:], unclear)
}
