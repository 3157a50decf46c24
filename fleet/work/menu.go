package work

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"diagnose/corpus/nightly"
	"diagnose/fleet/engine"
)

const (
	// examineEvery is how often the host is examined again for what it lacked: a package may
	// have been installed.
	examineEvery = time.Minute
	// longWait and shortWait are how long a request for a job waits: of the only class, or of one
	// of several.
	longWait, shortWait = 5 * time.Second, 300 * time.Millisecond
)

// menu is what a worker can take: the classes of jobs that its host can do.
type menu struct {
	board *board
	host  Host

	mu    sync.Mutex
	needs map[string]*Needs
	lacks map[string]nightly.Lack
	able  []string // classes, sorted
	open  map[string]jetstream.Consumer
	fresh chan struct{} // closed when there is a new class to take
}

func newMenu(b *board, host Host) *menu {
	return &menu{board: b, host: host, needs: map[string]*Needs{}, lacks: map[string]nightly.Lack{}, open: map[string]jetstream.Consumer{}, fresh: make(chan struct{})}
}

// follow takes in new classes, and tells the engine what this host can do, until ctx ends.
func (m *menu) follow(ctx context.Context, watch jetstream.KeyWatcher, name string) {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	again := time.NewTicker(examineEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			gone, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			m.board.workers.Purge(gone, name)
			cancel()
			return
		case k, more := <-watch.Updates():
			if !more {
				return
			}
			if k != nil && k.Operation() == jetstream.KeyValuePut && !m.add(k.Key(), k.Value()) {
				continue
			}
		case <-again.C:
			m.examine()
		case <-beat.C:
		}
		m.tell(ctx, name)
	}
}

// add takes in a class, and reports whether it is new.
func (m *menu) add(class string, text []byte) bool {
	n, err := decodeNeeds(class, text)
	if err != nil {
		return false
	}
	m.mu.Lock()
	_, known := m.needs[class]
	full := len(m.needs) >= mostClasses
	if !known && !full {
		m.needs[class] = n
	}
	m.mu.Unlock()
	if known || full {
		return false
	}
	m.judge(class, n)
	return true
}

// judge notes whether this host can do a class.
func (m *menu) judge(class string, n *Needs) {
	lack := m.host.lacks(n)
	m.mu.Lock()
	defer m.mu.Unlock()
	at, able := slices.BinarySearch(m.able, class)
	switch {
	case lack != nil:
		m.lacks[class] = *lack
		if able {
			m.able = slices.Delete(slices.Clone(m.able), at, at+1)
		}
	case !able:
		delete(m.lacks, class)
		m.able = slices.Insert(slices.Clone(m.able), at, class)
		close(m.fresh)
		m.fresh = make(chan struct{})
	}
}

// examine judges all classes again that depend on files.
func (m *menu) examine() {
	m.mu.Lock()
	list := map[string]*Needs{}
	for class, n := range m.needs {
		if len(n.Objects) > 0 {
			list[class] = n
		}
	}
	m.mu.Unlock()
	for class, n := range list {
		m.judge(class, n)
	}
}

// tell is a sign of life.
func (m *menu) tell(ctx context.Context, name string) {
	m.mu.Lock()
	p := presence{Name: name, Can: slices.Clone(m.able), Lacks: map[string]nightly.Lack{}}
	for class, l := range m.lacks {
		if len(p.Lacks) < mostLacks {
			p.Lacks[class] = l
		}
	}
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, beatEvery)
	defer cancel()
	m.board.put(ctx, m.board.workers, name, p) // if the server is away, the next one counts
}

// next waits for a job for a while, and returns it with how long its claim holds; nil: there is
// none. Jobs of several classes are taken in turn.
func (m *menu) next(ctx context.Context, turn int) (jetstream.Msg, time.Duration) {
	m.mu.Lock()
	able, fresh := m.able, m.fresh
	m.mu.Unlock()
	if len(able) == 0 {
		select {
		case <-ctx.Done():
		case <-fresh:
		case <-time.After(longWait):
		}
		return nil, 0
	}
	if len(able) == 1 {
		return m.fetch(ctx, able[0], longWait)
	}
	for i := range able {
		if msg, claim := m.fetch(ctx, able[(turn+i)%len(able)], 0); msg != nil {
			return msg, claim
		}
	}
	return m.fetch(ctx, able[turn%len(able)], shortWait)
}

// fetch asks for a job of a class; without a wait it does not wait for one.
func (m *menu) fetch(ctx context.Context, class string, wait time.Duration) (jetstream.Msg, time.Duration) {
	c, err := m.consumer(ctx, class)
	if err != nil {
		pause(ctx)
		return nil, 0
	}
	var batch jetstream.MessageBatch
	if wait == 0 {
		batch, err = c.FetchNoWait(1)
	} else {
		within, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		batch, err = c.Fetch(1, jetstream.FetchContext(within))
	}
	if err == nil {
		for msg := range batch.Messages() {
			return msg, c.CachedInfo().Config.AckWait
		}
		err = batch.Error()
	}
	if err != nil && ctx.Err() == nil && !isTimeout(err) {
		m.forget(class)
		pause(ctx)
	}
	return nil, 0
}

// consumer returns the consumer of a class.
func (m *menu) consumer(ctx context.Context, class string) (jetstream.Consumer, error) {
	m.mu.Lock()
	c := m.open[class]
	m.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := engine.Request(ctx, m.board.engine, func(ctx context.Context) (jetstream.Consumer, error) {
		return m.board.jobs.Consumer(ctx, consumer(class))
	})
	if err == nil {
		m.mu.Lock()
		m.open[class] = c
		m.mu.Unlock()
	}
	return c, err
}

func (m *menu) forget(class string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, class)
}

// isTimeout reports whether a request ended because no job came.
func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
}

// pause is the time between two requests of which the first failed.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(200 * time.Millisecond):
	}
}
