package recorder

import (
	"sync"
	"time"
)

const (
	// beginDelay is how long a child process has no manifest. Many end sooner, and are written
	// once.
	beginDelay = 10 * time.Millisecond
	// endDelay is how long the manifest of an ended process waits. If the run passes in that
	// time the manifest is dropped. If not, the program does not wait for it.
	endDelay = 5 * time.Second
)

// If a tracer is killed, no manifest exists of the children whose delay has not passed, and a
// main process that passed has only its first one.

// later writes once, after a delay, unless it is cancelled. A nil later has nothing to write.
type later struct {
	mu    sync.Mutex
	write func() error // nil: it has succeeded, or must not be called
	timer *time.Timer
}

// oneLater makes only one goroutine write at a time.
var oneLater sync.Mutex

// after calls write in another goroutine after the delay. If write fails, the later still
// waits.
func after(delay time.Duration, write func() error) *later {
	l := &later{write: write}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(delay, func() {
		oneLater.Lock()
		defer oneLater.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.write != nil && l.write() == nil {
			l.write = nil
		}
	})
	return l
}

// cancel reports whether the write was still waiting. When it returns, nothing is being
// written, and nothing will be.
func (l *later) cancel() (waited bool) {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
	waited = l.write != nil
	l.write = nil
	return waited
}

// storeLater is store, after a delay, with the manifest as it is now.
func (r *recording) storeLater(delay time.Duration) {
	if r.run.quiet() {
		return
	}
	r.later.cancel()
	manifest, path := r.manifest, r.path()
	r.later = after(delay, func() error { return manifest.Write(path) })
}

// flush stores the manifests that wait.
func (r *run) flush() {
	for _, x := range r.recordings {
		if x.later.cancel() {
			x.store()
		}
	}
}
