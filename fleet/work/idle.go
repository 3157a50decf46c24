package work

import (
	"sync"
	"time"
)

// idleness ends a worker that has nothing to do.
type idleness struct {
	limit time.Duration
	end   func()

	mu      sync.Mutex
	working int
	timer   *time.Timer // nil: no limit
}

// begin starts the time; limit 0 is none.
func (i *idleness) begin(limit time.Duration, end func()) {
	if limit > 0 {
		i.limit, i.end, i.timer = limit, end, time.AfterFunc(limit, end)
	}
}

func (i *idleness) busy() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.working++; i.timer != nil {
		i.timer.Stop()
	}
}

func (i *idleness) rest() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.working--; i.timer != nil && i.working == 0 {
		i.timer.Reset(i.limit)
	}
}
