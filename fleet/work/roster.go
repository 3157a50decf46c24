package work

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"diagnose/corpus/nightly"
)

// roster knows the workers that live.
type roster struct {
	mu      sync.Mutex
	workers map[string]*member
	// waits is since when no living worker could do a class.
	waits map[string]time.Time
	// heard is when the engine last told anything: the coordinator's own signs of life, at least.
	heard time.Time
}

type member struct {
	presence
	can  map[string]bool
	seen time.Time
}

// mostMembers bounds the workers that are remembered.
const mostMembers = 1 << 14

func newRoster() *roster {
	return &roster{workers: map[string]*member{}, waits: map[string]time.Time{}}
}

// note reads a worker's sign of life. What cannot be read is none.
func (r *roster) note(k jetstream.KeyValueEntry) {
	p, err := decodePresence(k.Value())
	if err != nil {
		return
	}
	r.add(k.Key(), p, time.Now())
}

func (r *roster) add(key string, p *presence, now time.Time) {
	m := &member{presence: *p, can: map[string]bool{}, seen: now}
	for _, class := range p.Can {
		m.can[class] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.heard = now; p.Coordinates {
		return
	}
	if r.workers[key] != nil || len(r.workers) < mostMembers {
		r.workers[key] = m
	}
}

// unable reports whether no living worker could do a class for as long as patience. lack is what
// one of them lacks; nil: there is none.
func (r *roster) unable(class string, patience time.Duration, now time.Time) (lack *nightly.Lack, unable bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.heard) > livesFor { // of the workers nothing is known
		clear(r.waits)
		return nil, false
	}
	for key, m := range r.workers {
		if now.Sub(m.seen) > livesFor {
			delete(r.workers, key)
			continue
		}
		if m.can[class] {
			delete(r.waits, class)
			return nil, false
		}
	}
	since, waiting := r.waits[class]
	if !waiting {
		r.waits[class] = now
		return nil, false
	}
	if now.Sub(since) < patience {
		return nil, false
	}
	return r.lack(class), true
}

// lack returns what the worker lacks that comes nearest.
func (r *roster) lack(class string) *nightly.Lack {
	var all []*nightly.Lack
	for _, m := range r.workers {
		if l, known := m.Lacks[class]; known {
			all = append(all, &l)
		}
	}
	if len(all) == 0 {
		return nil
	}
	nearness := []nightly.LackKind{nightly.LackObject, nightly.LackFeature, nightly.LackKernel, nightly.LackArchitecture, nightly.LackVersion}
	return slices.MinFunc(all, func(a, b *nightly.Lack) int {
		return cmp.Or(slices.Index(nearness, a.Kind)-slices.Index(nearness, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}

func sortWorkers(list []nightly.FleetWorker) {
	slices.SortFunc(list, func(a, b nightly.FleetWorker) int { return cmp.Compare(a.Name, b.Name) })
}
