package learn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/recorder/sites"
)

// Options of Run.
type Options struct {
	Image image.Options
	// Most bounds the instructions of each trace; 0: 2 million.
	Most uint64
	// Progress, if set, is called from time to time with a line for the user.
	Progress func(string)
}

// Site is an instruction that accesses a word without an order.
type Site struct {
	// Object is the path of the object file, and Offset the address in it.
	Object record.Text   `json:"object"`
	Offset evidence.Addr `json:"offset"`
	// Place is the function and the line, as far as they are known.
	Place string `json:"place,omitempty"`
	// Why says why it is not kept.
	Why string `json:"why,omitempty"`

	buildID string
}

// Result says which accesses were learned.
type Result struct {
	// Learned are new. Known were learned before: a recording that is newer than that has their order. Left are not kept.
	Learned, Known, Left []Site
	// Instructions were traced, in Traces replays.
	Instructions uint64
	Traces       int
	Time         time.Duration
}

const (
	mostSteps = 2_000_000
	// longer is how many times that the shortest stretch may have.
	longer = 10
	// mostTime is how long no further replay begins after, mostHeld bounds the threads that are kept back.
	mostTime = 2 * time.Minute
	mostHeld = 6
	// mostSites bounds the accesses that one replay teaches.
	mostSites = sites.MostLearned
)

// stretches are how many of the last events are traced, at first all. Of a stretch with too many instructions the first ones are
// traced, and a shorter one follows.
var stretches = []uint64{math.MaxUint64, 2000, 20}

// Run traces replays of a recording around the place where one of them stopped, and learns. done is how many events that one did.
func Run(ctx context.Context, rec *record.Recording, done uint64, opts Options) (*Result, error) {
	started := time.Now()
	if opts.Most == 0 {
		opts.Most = mostSteps
	}
	w, err := newWatcher(rec)
	if err != nil {
		return nil, err
	}
	result := &Result{}
	l := &learner{watcher: w, ctx: ctx, rec: rec, opts: opts, done: done, result: result, deadline: started.Add(mostTime)}
	if err := l.eager(); err != nil {
		return nil, err
	}
	if _, err := l.stretch(record.TimingLazy, nil); err != nil {
		return nil, err
	}
	result.keep(l.found)
	result.Time = time.Since(started)
	return result, nil
}

// learner makes the replays.
type learner struct {
	*watcher
	ctx      context.Context
	rec      *record.Recording
	opts     Options
	done     uint64
	deadline time.Time
	result   *Result
	found    []Site
}

// eager traces eager replays. A thread that computes without an end at the end of one is kept back in the next one, so that
// others come to what it waits for.
func (l *learner) eager() error {
	var held []eventlog.Preemption
	for range mostHeld {
		cut, err := l.stretch(record.TimingEager, held)
		if err != nil || !cut {
			return err
		}
		p, ok := l.place()
		if !ok || slices.ContainsFunc(held, func(x eventlog.Preemption) bool { return x.Thread == p.Thread && x.Ordinal == p.Ordinal }) {
			return nil
		}
		held = append(held, p)
	}
	return nil
}

// stretch traces as many of the last events as can be. cut: the end was not reached, as a thread computes.
func (l *learner) stretch(timing record.Timing, held []eventlog.Preemption) (cut bool, err error) {
	for i, events := range stretches {
		if i > 0 && events >= l.done {
			continue
		}
		windows := l.order.windows(l.done, events)
		if cut, err = l.trace(timing, windows, held, l.opts.Most); err != nil {
			return false, err
		}
		last := i == len(stretches)-1
		if last && cut && !l.spins() {
			cut, err = l.trace(timing, windows, held, longer*l.opts.Most)
		}
		if err != nil || !cut {
			return false, err
		}
	}
	return cut, nil
}

// trace makes one replay. cut: it has more instructions than were traced, or is stuck.
func (l *learner) trace(timing record.Timing, windows map[uint32]replay.StepWindow, held []eventlog.Preemption, most uint64) (cut bool, err error) {
	if time.Now().After(l.deadline) {
		return false, nil
	}
	if l.opts.Progress != nil {
		l.opts.Progress(fmt.Sprintf("looking for accesses without an order, replay %d", l.result.Traces+1))
	}
	l.begin()
	times := l.rec.Manifest.Times
	atEnd := func(s *replay.Stopped) (err error) {
		l.found, err = l.sites(s)
		return err
	}
	r, err := replay.Run(l.ctx, l.rec, replay.StepRequest{
		Common: replay.Common{Timing: timing, Preemptions: append([]eventlog.Preemption{}, held...), Image: l.opts.Image, Unnamed: true,
			Sleeping: 2 * time.Second, Computing: 5*time.Second + 5*time.Duration(times.UserNS+times.SystemNS), AtEnd: atEnd},
		Stepping: replay.Stepping{Windows: windows, Most: most, Each: l.each, Ahead: true},
	})
	var diverged *replay.DivergenceError
	var stuck *replay.StuckError
	var missed *replay.MomentError
	if err != nil && !errors.As(err, &diverged) && !errors.As(err, &stuck) && !errors.As(err, &missed) {
		return false, fmt.Errorf("learn: %w", err)
	}
	l.result.Traces++
	l.result.Instructions += l.executed
	return r != nil && (r.End == replay.EndMoment || stuck != nil), nil
}

// keep learns sites, the most important ones first.
func (r *Result) keep(found []Site) {
	type object struct {
		buildID string
		at      []uint64
	}
	var objects []*object
	for _, s := range found {
		i := slices.IndexFunc(objects, func(o *object) bool { return o.buildID == s.buildID })
		if i < 0 {
			i, objects = len(objects), append(objects, &object{buildID: s.buildID})
		}
		objects[i].at = append(objects[i].at, uint64(s.Offset))
	}
	for _, o := range objects {
		known := sites.Learned(o.buildID)
		added, err := sites.Learn(o.buildID, o.at)
		for _, s := range found {
			switch {
			case s.buildID != o.buildID:
			case slices.Contains(known, uint64(s.Offset)):
				r.Known = append(r.Known, s)
			case err == nil && slices.Contains(added, uint64(s.Offset)):
				r.Learned = append(r.Learned, s)
			case err != nil:
				s.Why = err.Error()
				r.Left = append(r.Left, s)
			default:
				s.Why = fmt.Sprintf("%d accesses of the object are kept", sites.MostLearned)
				r.Left = append(r.Left, s)
			}
		}
	}
}

// sites returns the accesses to learn, the most important ones first. The process has the traced replay's end.
func (w *watcher) sites(s *replay.Stopped) ([]Site, error) {
	pcs := w.unordered()
	if len(pcs) == 0 {
		return nil, nil
	}
	p, err := s.Process()
	if err != nil {
		return nil, err
	}
	var list []Site
	for _, pc := range pcs {
		calls := p.Symbolize(evidence.Addr(pc), image.AtInstruction)
		at := calls[len(calls)-1].Site
		if at.Module == "" || sites.OrdersItself(at.Module) || at.Module == string(w.library) {
			continue
		}
		site := Site{Object: record.Text(at.Module), Offset: at.ModuleOffset, buildID: at.BuildID}
		if inner := calls[0].Site; inner.Function != "" {
			site.Place = inner.Function
			if inner.Line != 0 {
				site.Place = fmt.Sprintf("%s (%s:%d)", inner.Function, filepath.Base(inner.File), inner.Line)
			}
		}
		if list = append(list, site); len(list) == mostSites {
			break
		}
	}
	return list, nil
}

// order is the order of events.
type order struct {
	of    map[uint32][]uint64 // positions by thread and ordinal, from 1
	total uint64
}

func readOrder(log *eventlog.Log) (*order, error) {
	o := &order{of: map[uint32][]uint64{}}
	for e, err := range log.Ordered() {
		if err != nil && o.total > 0 {
			break // a replay gets as far
		}
		if err != nil {
			return nil, fmt.Errorf("learn: %w", err)
		}
		o.total++
		o.of[e.Thread] = append(o.of[e.Thread], o.total)
	}
	return o, nil
}

// step returns the positions of a thread's event, and of the last one before its next.
func (o *order) step(thread uint32, ordinal uint64) (begin, end uint64) {
	list := o.of[thread]
	end = o.total
	if ordinal > 0 && ordinal <= uint64(len(list)) {
		begin = list[ordinal-1]
	}
	if ordinal < uint64(len(list)) {
		end = list[ordinal] - 1
	}
	return begin, end
}

// windows are the parts of all threads from so many events before a position on.
func (o *order) windows(done, events uint64) map[uint32]replay.StepWindow {
	from := done - min(done, events)
	windows := map[uint32]replay.StepWindow{}
	for thread, list := range o.of {
		i, exact := slices.BinarySearchFunc(list, from, cmp.Compare)
		if exact {
			i++
		}
		windows[thread] = replay.StepWindow{From: max(uint64(i), 1), To: ^uint64(0) >> 1}
	}
	return windows
}
