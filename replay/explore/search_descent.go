package explore

import (
	"context"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/replay/record"
)

// effort limits the search for a way past a divergence. With little effort, every replay that
// gets further is followed to its end before more is tried.
type effort struct {
	windows []int // numbers of steps of the diverging thread in a window
	races   int   // orders of accesses that are tried for a window
	neutral int   // orders that got as far as the previous one and are followed in turn
	alike   bool  // replays that diverge like an earlier one are followed, too
}

var efforts = []effort{
	{[]int{1}, 48, 8, false},
	{[]int{1, 2, 4}, 96, 16, true},
	{[]int{1, 2, 4, 8, 16}, mostFine, 48, true},
}

// candidate is another order to try.
type candidate struct {
	plan  plan
	shape shape
	race  racePlace
	word  evidence.Addr // that is accessed at the race; 0: not known
}

// descent is a search with one effort.
type descent struct {
	*search
	effort
	visited map[string]bool // plans
}

// diverged is where a replay diverged.
type diverged struct {
	thread  uint32
	ordinal uint64
	events  uint64
	why     signature
}

func (o *outcome) diverged() diverged { return diverged{o.thread, o.ordinal, o.events, o.why} }

// beyond follows replays that get further than this one, depth first; nil: none of them reaches
// the recorded end.
func (d *descent) beyond(ctx context.Context, o *outcome) (*outcome, error) {
	key := o.plan.key()
	if d.visited[key] {
		return nil, nil
	}
	d.visited[key] = true
	at := &node{descent: d, from: o, seen: map[diverged]bool{}}
	for _, steps := range d.windows {
		w := d.order.window(o.thread, o.ordinal, steps)
		if w == nil {
			return nil, nil
		}
		at.window = w
		if found, err := at.search(ctx); found != nil || err != nil {
			return found, err
		}
		if uint64(steps) >= o.ordinal {
			break // it is the beginning of the thread
		}
	}
	return nil, nil
}

// node is a replay that another one should get further than.
type node struct {
	*descent
	from   *outcome
	window *window
	seen   map[diverged]bool
}

func (n *node) search(ctx context.Context) (*outcome, error) {
	lists := []func(context.Context) ([]candidate, error){n.wholeSteps, n.calls}
	if n.known.insideFirst() {
		slices.Reverse(lists)
	}
	for _, list := range lists {
		candidates, err := list(ctx)
		if err != nil {
			return nil, err
		}
		if found, err := n.try(ctx, candidates, LevelCoarse, nil); found != nil || err != nil {
			return found, err
		}
	}
	if n.from.plan.timing != record.TimingEager {
		return nil, nil
	}
	few, err := n.fine(ctx, n.from, n.window, fewSteps, nil)
	if err != nil {
		return nil, err
	}
	if !few.cut {
		return n.stepped(ctx, few)
	}
	// The window is long: threads may communicate anywhere in it.
	if found, err := n.try(ctx, few.points, LevelCoarse, nil); found != nil || err != nil {
		return found, err
	}
	shared, err := n.shared(ctx, n.from, n.window)
	if err != nil {
		return nil, err
	}
	if found, err := n.try(ctx, shared[:min(len(shared), n.effort.races)], LevelFine, nil); found != nil || err != nil {
		return found, err
	}
	if !n.alike {
		return n.races(ctx, few.accesses) // the rest costs more than everything before
	}
	all, err := n.fine(ctx, n.from, n.window, mostSteps, nil)
	if err != nil {
		return nil, err
	}
	return n.stepped(ctx, all)
}

func (n *node) wholeSteps(context.Context) ([]candidate, error) {
	return n.coarse(n.from, n.window), nil
}

// calls is for eager replays only.
func (n *node) calls(ctx context.Context) ([]candidate, error) {
	if n.from.plan.timing != record.TimingEager {
		return nil, nil
	}
	return n.called(ctx, n.from, n.window)
}

// stepped tries the candidates of a trace by steps.
func (n *node) stepped(ctx context.Context, x traced) (*outcome, error) {
	if found, err := n.try(ctx, x.points, LevelCoarse, nil); found != nil || err != nil {
		return found, err
	}
	return n.races(ctx, x.accesses)
}

// races reverses races one by one. If no single reversal is enough, those that get as far and
// run other code are examined: that code may have the decisive race.
func (n *node) races(ctx context.Context, list []candidate) (*outcome, error) {
	var neutral []*outcome
	list = list[:min(len(list), n.effort.races)]
	found, err := n.try(ctx, list, LevelFine, &neutral)
	if found != nil || err != nil {
		return found, err
	}
	known := map[racePlace]bool{}
	for _, c := range list {
		known[c.race] = true
	}
	for _, o := range neutral[:min(len(neutral), n.neutral)] {
		x, err := n.fine(ctx, o, n.window, mostSteps, known)
		if err != nil {
			return nil, err
		}
		accesses := x.accesses
		for _, c := range accesses {
			known[c.race] = true
		}
		accesses = accesses[:min(len(accesses), n.effort.races)]
		if found, err := n.try(ctx, accesses, LevelFine, nil); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// try replays candidates and follows those that get further, first those that helped where
// another thread diverged in the same way. neutral, unless nil, receives those that get as far
// and end in the same thread.
func (n *node) try(ctx context.Context, list []candidate, level Level, neutral *[]*outcome) (*outcome, error) {
	from := n.from
	for i, c := range n.known.first(from.why, list) {
		n.result.Window = Window{n.window.from(), n.window.to()}
		n.looked = fmt.Sprintf("%d of %d orders at the %s level between the events %d and %d, and the orders after them",
			len(list)-i, len(list), level, n.window.from(), n.window.to())
		if n.useless(c.plan, from, neutral != nil) {
			n.result.Remembered++
			continue
		}
		o, err := n.attempt(ctx, c.plan, level)
		if err != nil {
			return nil, err
		}
		switch {
		case o.same || o.events > from.events:
			if n.known.addSignature(from.why, c.shape) {
				n.result.CacheHits++
			}
			n.noteRace(c.word)
			found, err := n.follow(ctx, o)
			if found != nil || err != nil {
				return found, err
			}
		case neutral != nil && o.events == from.events && o.thread == from.thread && o.ordinal == from.ordinal:
			*neutral = append(*neutral, o)
		}
	}
	return nil, nil
}

// follow continues from a replay that got further.
func (n *node) follow(ctx context.Context, o *outcome) (*outcome, error) {
	if o.same || o.events > n.best.events {
		n.best = o
	}
	if o.same {
		return o, nil
	}
	at := o.diverged()
	if n.seen[at] && !n.alike {
		return nil, nil
	}
	n.seen[at] = true
	return n.beyond(ctx, o)
}
