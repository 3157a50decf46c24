package watchtrace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/staticscan"
)

// mostKnown bounds the instructions of a pass by probes: finding space for the
// code of one takes half a millisecond.
const mostKnown = 1000

// A pass by probes ends when it would take too long: after a hundred thousand
// stops of about 50 us each, or after knownBudget times the hits of other
// passes.
const (
	mostStops   = 100_000
	knownBudget = 16
)

// addKnown adds passes by probes for words, if the options ask for them.
func (p *Plan) addKnown(words []word) {
	if !p.opts.Known && p.opts.Backend != replay.BackendProbe {
		return
	}
	for len(words) > 0 {
		n := min(len(words), replay.MostProbed)
		p.addKnownPass(words[:n])
		words = words[n:]
	}
}

func (p *Plan) addKnownPass(words []word) {
	x := passOf(words)
	x.Known = true
	p.Passes = append(p.Passes, x)
	for _, w := range words {
		if v := &p.Variables[w.variable]; v.Pass == 0 || v.Untraced != "" {
			v.Pass, v.Untraced = len(p.Passes), ""
		}
	}
}

// know adds a pass by probes for a variable that was too busy for its pass.
func (p *Plan) know(pass Pass, variable int, s *seen) {
	words := slices.DeleteFunc(pass.words(), func(w word) bool { return w.variable != variable })
	x := passOf(words)
	x.Known = true
	for i := range s.hits {
		h := &s.hits[i]
		if pass.Variables[h.Watch] == variable && h.By != evidence.ByCall && !slices.Contains(x.seen, h.PC) {
			x.seen = append(x.seen, h.PC)
		}
	}
	p.Passes = append(p.Passes, x)
	p.Variables[variable].Pass = len(p.Passes)
}

// toKnown makes a pass one by probes, whose words are in pages that are too busy. s is what the pass saw before it ended for that; nil: it has not
// run, and it is asked whether another pass found one of its pages busy. It reports whether the pass is by probes now.
func (t *tracer) toKnown(i int, s *seen) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := &t.plan.Passes[i]
	const pageSize = 4096
	page := func(w replay.Watch) uint64 { return uint64(w.Addr) / pageSize }
	if s == nil && (x.locks || !slices.ContainsFunc(x.Watches, func(w replay.Watch) bool { return t.busy[page(w)] })) {
		return false
	}
	x.Known = true
	if s == nil {
		return true
	}
	for _, w := range x.Watches {
		t.busy[page(w)] = true
	}
	for j := range s.hits {
		if h := &s.hits[j]; h.By != evidence.ByCall && !slices.Contains(x.seen, h.PC) {
			x.seen = append(x.seen, h.PC)
		}
	}
	return true
}

// known replays a pass by probes.
func (t *tracer) known(ctx context.Context, i int) (*seen, error) {
	t.mu.Lock()
	x := &t.plan.Passes[i]
	x.instructions = t.instructions(i)
	pass := *x
	t.mu.Unlock()
	var s *seen
	if len(pass.instructions) > 0 {
		s = t.replay(ctx, pass, i == 0, replay.BackendProbe)
	}
	var cannot *replay.UnsupportedError
	var stops *replay.StopsError
	switch {
	case s == nil:
		t.untraced(i, "no instruction is known that accesses it")
		s = &seen{hot: -1}
	case errors.As(s.err, &cannot) && t.plan.opts.Backend == "":
		t.untraced(i, s.err.Error())
		s = &seen{hot: -1}
	case errors.As(s.err, &stops):
		t.untraced(i, "it is accessed too often by instructions that a probe has to stop at")
		s = &seen{hot: -1}
	case s.hot >= 0:
		t.untraced(i, fmt.Sprintf("it is accessed too often: more than %d times", s.dropped))
		s = &seen{hot: -1}
	case s.err != nil && s.result == nil:
		return nil, s.err
	}
	t.began(i, s)
	t.tell(0, true)
	return s, nil
}

// instructions returns the instructions that are known to access the words of
// the pass with this index, including all that another pass saw. It is called
// with mu held.
func (t *tracer) instructions(pass int) []evidence.Addr {
	x := &t.plan.Passes[pass]
	list := slices.Clone(x.seen)
	if t.names.process == nil {
		return list
	}
	var ranges []staticscan.Range
	for _, w := range x.Watches {
		ranges = append(ranges, staticscan.Range{Addr: w.Addr, Size: w.Size})
	}
	found, left := staticscan.Accessors(t.names.process, ranges, mostKnown)
	if left > 0 {
		t.limit(evidence.Limit{Code: evidence.LimitFurtherInstructions, Count: uint64(left), Pass: pass + 1})
	}
	for _, pc := range found {
		if !slices.Contains(list, pc) {
			list = append(list, pc)
		}
	}
	return list
}

// untraced records why the variables of a pass are not traced.
func (t *tracer) untraced(pass int, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.plan.Passes[pass].Variables {
		v := &t.plan.Variables[i]
		if v.Untraced == "" && v.Pass == pass+1 {
			v.Untraced = why
		}
	}
}

// keepLast bounds the hits kept of a pass that runs to the end: it keeps the
// last ones, because they are nearest to the failure. told is how many of the
// kept hits have been reported as progress.
func (s *seen) keepLast(most uint64, told int) int {
	if uint64(len(s.hits)) < 2*most {
		return told
	}
	drop := len(s.hits) - int(most)
	s.dropped += uint64(drop)
	s.hits = append(s.hits[:0], s.hits[drop:]...)
	return max(told-drop, 0)
}

// known records for the variables of a pass by probes how much was not seen.
func (m *merger) known(x *Pass, s *seen) {
	for i, n := range x.Variables {
		v := &m.log.Variables[n]
		v.Instructions = len(x.instructions) - len(s.result.Unprobed)
		v.Lost = s.dropped
		if i < len(s.result.Unseen) {
			v.Unseen += s.result.Unseen[i]
		}
	}
	m.log.Lost += s.dropped
	m.limit(evidence.Limit{Code: evidence.LimitKnownInstructions, Names: names(m.log.Variables, x.Variables),
		Count: uint64(len(x.instructions) - len(s.result.Unprobed)), Of: uint64(len(s.result.Unprobed)), Lost: s.dropped})
}

// names returns the names of the variables with these indices.
func names(variables []evidence.Watched, indices []int) []string {
	var list []string
	for _, i := range slices.Compact(slices.Sorted(slices.Values(indices))) {
		list = append(list, variables[i].Name)
	}
	return list
}
