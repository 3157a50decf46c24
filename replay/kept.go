package replay

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"diagnose/replay/record"
)

// Kept keeps checkpoints of the replays of a recording, so that later replays begin near what they look at. Replays leave them
// before they observe anything; the first of them runs from the recording's start. It may be used by several goroutines at once.
type Kept struct {
	most  int
	store *Store // nil: checkpoints end with Close

	mu   sync.Mutex
	list []*kept
	// timings are those in which a replay reached the recorded end. Without one no checkpoint of the recording is used.
	timings map[*record.Recording]record.Timing
	// leaving are the positions at which a running replay is to leave a checkpoint.
	leaving map[place]bool
	counts  ReplayCounts
	closed  bool
	// whole are the longest times that whole replays took. searched are the recordings that were looked up in store.
	whole    map[*record.Recording]time.Duration
	searched map[*record.Recording]bool
	// users are the replays that begin at a checkpoint.
	users sync.WaitGroup

	// loading is held while the process of a checkpoint is made from a file.
	loading  sync.Mutex
	prepared map[*record.Recording]*preparedRecording
}

// place is a position in a recording: a number of events that all threads have done.
type place struct {
	rec      *record.Recording
	timing   record.Timing
	free     bool
	position uint64
}

// kept is a checkpoint of a replay that began as of says.
type kept struct {
	*Checkpoint
	of       *scope
	position uint64
	// lost: its process cannot be copied any more.
	lost bool
	// uses counts the replays that began there. stored is its file, if it was read from one.
	uses   uint64
	stored *stored
}

// ReplayCounts are the replays of a diagnosis.
type ReplayCounts struct {
	// Whole replays began at the recording's start, Continued ones at a checkpoint.
	Whole, Continued int
	// WholeTime and ContinuedTime are the sums of the times that they took. Those of replays that ran at once are added.
	WholeTime, ContinuedTime time.Duration
	// Checkpoints counts those that were left, Loaded those that were made from files.
	Checkpoints, Loaded int
}

// MostKept bounds the checkpoints of a diagnosis: each is a process. Their memory is bounded by Stopped.RoomFor.
const MostKept = 36

// mostEven and mostNear bound those of one recording: positionsFor.
const (
	mostEven = 4
	mostNear = 8
)

type keptKey struct{}

// KeepCheckpoints returns a context in which replays leave at most so many checkpoints, and begin at them, until Close. In a context that
// has a Kept already, that is returned.
func KeepCheckpoints(ctx context.Context, most int) (context.Context, *Kept) {
	if k := keptOf(ctx); k != nil {
		return ctx, k
	}
	k := &Kept{most: most, store: storeOf(ctx), timings: map[*record.Recording]record.Timing{}, leaving: map[place]bool{},
		whole: map[*record.Recording]time.Duration{}, searched: map[*record.Recording]bool{}, prepared: map[*record.Recording]*preparedRecording{}}
	return context.WithValue(ctx, keptKey{}, k), k
}

func keptOf(ctx context.Context) *Kept {
	k, _ := ctx.Value(keptKey{}).(*Kept)
	return k
}

// Close gives up the checkpoints, after it has written some to the Store. Replays that begin at one of them end before; later ones are whole.
func (k *Kept) Close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.users.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.write()
	for _, x := range k.list {
		if x.copied != nil {
			x.Close()
		}
	}
	for _, p := range k.prepared {
		p.recordings.Close()
	}
	k.list = nil
	clear(k.prepared)
}

// Counts returns the replays so far.
func (k *Kept) Counts() ReplayCounts {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.counts
}

// run makes a replay: from the last checkpoint before all that it observes, or from the start.
func (k *Kept) run(ctx context.Context, rec *record.Recording, p parts) (*Result, error) {
	at, err := p.scope(rec)
	if err != nil || at == nil {
		return k.count(rec, &p, func() (*Result, error) { return run(ctx, rec, p) })
	}
	k.find(at)
	from := k.begin(at)
	for from != nil && k.load(ctx, from) != nil {
		k.giveUp(from)
		k.users.Done()
		from = k.begin(at)
	}
	if from != nil {
		defer k.users.Done()
		p.from = from.Checkpoint
	}
	if p.leaves() {
		p.leaving = &leaving{kept: k, scope: at, from: from}
	}
	result, err := k.count(rec, &p, func() (*Result, error) { return run(ctx, rec, p) })
	k.adopt(p.leaving, result, err)
	if refused := (*copyError)(nil); errors.As(err, &refused) && ctx.Err() == nil {
		k.giveUp(from)
		p.from, p.leaving = nil, nil
		return k.count(rec, &p, func() (*Result, error) { return run(ctx, rec, p) })
	}
	return result, err
}

// copyError says that the process of a checkpoint could not be copied. Nothing was observed then.
type copyError struct{ err error }

func (e *copyError) Error() string { return e.err.Error() }

func (e *copyError) Unwrap() error { return e.err }

// giveUp has no other replay begin at a checkpoint.
func (k *Kept) giveUp(x *kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	x.lost = true
}

// count counts a replay.
func (k *Kept) count(rec *record.Recording, p *parts, replay func() (*Result, error)) (*Result, error) {
	started := time.Now()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if took := time.Since(started); p.from != nil {
			k.counts.Continued++
			k.counts.ContinuedTime += took
		} else {
			k.counts.Whole++
			k.counts.WholeTime += took
			k.whole[rec] = max(k.whole[rec], took)
		}
	}()
	return replay()
}

// begin returns the last checkpoint at which a replay can begin, in use until users.Done; nil: there is none.
func (k *Kept) begin(at *scope) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.timings[at.rec] != at.timing {
		return nil
	}
	var best *kept
	for _, x := range k.list {
		if !x.lost && x.of.equals(at) && (best == nil || x.position > best.position) && at.mayBegin(x.Checkpoint) {
			best = x
		}
	}
	if best != nil {
		best.uses++
		k.users.Add(1)
	}
	return best
}

// reserve returns the positions after one and before another at which a replay is to leave checkpoints.
func (k *Kept) reserve(at *scope, after, before, total uint64) (positions []uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, position := range positionsFor(total) {
		switch reserved := (place{at.rec, at.timing, at.free, position}); {
		case position <= after || position >= before || k.leaving[reserved]:
		case slices.ContainsFunc(k.list, func(x *kept) bool { return x.position == position && x.of.equals(at) }):
		case len(k.list)+len(k.leaving) < k.most && !k.closed:
			k.leaving[reserved] = true
			positions = append(positions, position)
		}
	}
	return positions
}

// positionsFor returns numbers of events of a recording that has total events: some at even distances, and more whose distances from the
// end grow by one factor, because most replays look near the failure.
func positionsFor(total uint64) (positions []uint64) {
	for i := range uint64(mostEven) {
		if at := total / (mostEven + 1) * (i + 1); at > 0 {
			positions = append(positions, at)
		}
	}
	factor := max(2, math.Pow(float64(total), 1./mostNear))
	distance := 1.
	for range mostNear {
		if distance < float64(total) {
			positions = append(positions, total-uint64(distance))
		}
		distance *= factor
	}
	slices.Sort(positions)
	return slices.Compact(positions)
}

// adopt keeps the checkpoints that a replay has left, unless it was another run than the recorded one.
func (k *Kept) adopt(l *leaving, result *Result, err error) {
	if l == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, position := range l.positions {
		delete(k.leaving, place{l.rec, l.timing, l.free, position})
	}
	asRecorded := err == nil && result.worked() && result.Left == nil && result.Timing == l.timing
	if asRecorded && result.End != EndMoment {
		k.timings[l.rec] = l.timing
	}
	for _, x := range l.left {
		if asRecorded && !k.closed {
			k.list = append(k.list, x)
			k.counts.Checkpoints++
		} else {
			x.Close()
		}
	}
}
