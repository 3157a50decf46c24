package watchtrace

import (
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/record"
)

// Plan assigns the watched words to passes.
type Plan struct {
	Passes []Pass
	// Variables are the targets, in their order, with the first pass of each,
	// or the reason why it has none.
	Variables []evidence.Watched

	rec     *record.Recording
	opts    Options
	targets []Target
	limits  []evidence.Limit
	history *history
	timing  record.Timing
}

// Pass is one replay.
type Pass struct {
	Watches []replay.Watch
	// Variables and Offsets give for each of the Watches the plan's variable
	// and the offset in it.
	Variables []int
	Offsets   []int
	// Known: it sees only accesses by known instructions, so it can have any
	// number of watches.
	Known bool
	// locks: it watches the owners of locks; Variables are the indices of the
	// locks.
	locks bool
	// since is the number of the first hit after Options.From, once the pass has run.
	since uint64
	// instructions are those of a Known pass, once it has run; seen are
	// instructions that another pass saw.
	instructions, seen []evidence.Addr
}

// word is the memory that one watchpoint covers.
type word struct {
	watch            replay.Watch
	variable, offset int
}

// registers is the number of words of a pass: all debug registers, unless the
// replay itself needs one.
const registers = 4

// mostOfOne bounds the words of one target: a part of a large array shows as
// much as the whole.
const mostOfOne = 64

// NewPlan makes the plan. It is the same for the same recording, targets and
// budgets.
func NewPlan(rec *record.Recording, targets []Target, opts Options) (*Plan, error) {
	p := &Plan{rec: rec, opts: opts, targets: targets}
	p.opts.setDefaults()
	for _, t := range targets {
		w := evidence.Watched{Name: t.Name, Type: t.Type, Identity: t.Identified(), Address: t.Addr, Size: t.Size}
		switch {
		case t.Absent != "":
			w.Untraced = t.Absent
		case t.Size <= 0 || uint64(t.Addr)+uint64(t.Size) > 1<<47:
			w.Untraced = fmt.Sprintf("%d bytes at %v are no memory of a program's", t.Size, t.Addr)
		}
		p.Variables = append(p.Variables, w)
	}
	var err error
	if p.history, err = readHistory(rec, targets); err != nil {
		return nil, err
	}
	most := registers
	if p.history.places || opts.From != nil || opts.Until != nil {
		most-- // finding the place of a signal, or a moment, may need one
	}
	groups, beyond := p.words()
	if p.opts.Backend == replay.BackendProbe {
		beyond = slices.Concat(slices.Concat(groups...), beyond)
	} else {
		beyond = append(p.fill(groups, most), beyond...)
	}
	p.addKnown(beyond)
	if opts.LockOrder {
		p.Passes = append(p.Passes, p.history.orderPasses(most)...)
	}
	return p, nil
}

// words splits the targets into words that watchpoints can cover. The words of
// a group are together, and the groups are in the order of their first targets.
// beyond are the excess words.
func (p *Plan) words() (groups [][]word, beyond []word) {
	index := map[string]int{}
	taken := map[replay.Watch]int{}
	left := p.opts.Words
	for i, t := range p.targets {
		v := &p.Variables[i]
		if v.Untraced != "" {
			continue
		}
		var list []word
		pieces := p.history.withoutLocks(cut(t, i))
		for _, w := range pieces {
			if _, shared := taken[w.watch]; !shared && len(list) < min(left, mostOfOne) {
				taken[w.watch] = i
				list = append(list, w)
			}
		}
		if len(list) == 0 {
			v.Untraced = p.why(t, i, taken, left)
			if left <= 0 {
				beyond = append(beyond, pieces[:min(len(pieces), mostOfOne)]...)
			}
			continue
		}
		left -= len(list)
		if done := list[len(list)-1]; done.offset < pieces[len(pieces)-1].offset {
			p.limits = evidence.AddLimit(p.limits, evidence.Limit{Code: evidence.LimitPartTraced, Names: []string{t.Name}, Count: uint64(done.offset + done.watch.Size), Of: uint64(t.Size)})
		}
		g, found := index[t.Group]
		if !found || t.Group == "" {
			g = len(groups)
			groups = append(groups, nil)
			index[t.Group] = g
		}
		groups[g] = append(groups[g], list...)
	}
	return groups, beyond
}

// why says why no word of a target is watched.
func (p *Plan) why(t Target, i int, taken map[replay.Watch]int, left int) string {
	if left <= 0 {
		return fmt.Sprintf("the budget of %d words was used up by stronger suspects", p.opts.Words)
	}
	for _, w := range cut(t, i) {
		if other, ok := taken[w.watch]; ok {
			return "it is the same memory as " + p.Variables[other].Name
		}
	}
	return "nothing of it can be watched"
}

// withoutLocks removes the words of locks, because the log has their events,
// unless there are no other words.
func (h *history) withoutLocks(words []word) []word {
	left := slices.DeleteFunc(slices.Clone(words), func(w word) bool {
		for i := range h.locks {
			if l := &h.locks[i]; w.watch.Addr >= l.addr && w.watch.Addr < l.addr+lockSizes[l.kind] {
				return true
			}
		}
		return false
	})
	if len(left) == 0 {
		return words
	}
	return left
}

// cut splits a target into aligned words of the largest possible size.
func cut(t Target, variable int) []word {
	const most = 4096 // bytes: far more than are ever watched
	var list []word
	for offset := 0; offset < min(t.Size, most); {
		end := t.Size
		if t.Stride > 0 {
			begin := offset / t.Stride * t.Stride
			if end = min(begin+t.Part, t.Size); offset >= end {
				offset = begin + t.Stride
				continue
			}
		}
		at := uint64(t.Addr) + uint64(offset)
		size := 8
		for at%uint64(size) != 0 || offset+size > end {
			size /= 2
		}
		list = append(list, word{replay.Watch{Addr: evidence.Addr(at), Size: size, Writes: t.Writes}, variable, offset})
		offset += size
	}
	return list
}

// fill puts groups of words into passes; most bounds the words of a pass. The
// rest of a group that does not fill a pass joins the rests of other groups,
// the strongest first. beyond are the words of excess passes.
func (p *Plan) fill(groups [][]word, most int) (beyond []word) {
	var passes [][]word
	for _, g := range groups {
		for len(g) >= most {
			passes = append(passes, g[:most:most])
			g = g[most:]
		}
		if len(g) == 0 {
			continue
		}
		joined := false
		for i := range passes {
			if joined = len(passes[i])+len(g) <= most; joined {
				passes[i] = append(passes[i], g...)
				break
			}
		}
		if !joined {
			passes = append(passes, g)
		}
	}
	for i, words := range passes {
		if i >= p.opts.Passes {
			beyond = append(beyond, words...)
			for _, w := range words {
				if v := &p.Variables[w.variable]; v.Pass == 0 {
					v.Untraced = fmt.Sprintf("the budget of %d passes was used up by stronger suspects", p.opts.Passes)
				}
			}
			continue
		}
		p.Passes = append(p.Passes, passOf(words))
		for _, w := range words {
			if v := &p.Variables[w.variable]; v.Pass == 0 {
				v.Pass, v.Untraced = i+1, ""
			}
		}
	}
	return beyond
}

func passOf(words []word) Pass {
	var pass Pass
	for _, w := range words {
		pass.Watches = append(pass.Watches, w.watch)
		pass.Variables = append(pass.Variables, w.variable)
		pass.Offsets = append(pass.Offsets, w.offset)
	}
	return pass
}

// words returns the words of a pass.
func (x *Pass) words() []word {
	var list []word
	for i := range x.Watches {
		list = append(list, word{x.Watches[i], x.Variables[i], x.Offsets[i]})
	}
	return list
}
