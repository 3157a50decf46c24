package debug

import (
	"fmt"
	"time"
)

// way is what a session tells while replays lead it somewhere.
type way struct {
	// tell, if set, gets the news of a long way: one line, every so often.
	tell  func(text string)
	every time.Duration
	// doing is the present part of the way, since when it began; depth counts the ways that this one is a part of.
	doing string
	since time.Time
	depth int
}

// tellEvery is way.every.
const tellEvery = 2 * time.Second

// OnProgress sets a function that is told, every two seconds, what a long way backwards, or to a position, does. It is called in the goroutine
// of the method that goes the way.
func (s *Session) OnProgress(tell func(text string)) { s.way.tell = tell }

// begin begins a way, which Interrupt ends at any time. The function that it returns ends it.
func (s *Session) begin(doing string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.way.depth++; s.way.depth == 1 {
		s.under = true
		s.way.doing, s.way.since = doing, time.Now()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.way.depth--; s.way.depth == 0 {
			s.under, s.interrupted = false, false
		}
	}
}

// wait returns the next stop of a replay.
func (w *way) wait(l *live) (Stop, error) {
	var tick <-chan time.Time
	if w.tell != nil && w.depth > 0 {
		ticker := time.NewTicker(w.every)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case s := <-l.stops:
			return s, nil
		case <-l.ended:
			if l.err != nil {
				return Stop{}, l.err
			}
			return Stop{}, errEnded
		case <-tick:
			w.tell(fmt.Sprintf("%s, for %d s; Ctrl-C gives it up", w.doing, int(time.Since(w.since).Seconds())))
		}
	}
}
