package replay

import (
	"testing"
	"time"
)

func TestWatchState(t *testing.T) {
	start := time.Now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var s watchState
	s.start(start)
	s.see(at(1), 5, 1)
	s.see(at(2), 5, 2) // computes
	s.see(at(3), 5, 2) // sleeps
	if s.event != at(1) || s.moved != at(2) {
		t.Errorf("the last event was seen at %v and the last sign of life at %v, want 1s and 2s", s.event.Sub(start), s.moved.Sub(start))
	}
	s.see(at(4), 6, 2)
	if s.event != at(4) || s.moved != at(4) {
		t.Errorf("an event without processor time was not seen: %v, %v", s.event.Sub(start), s.moved.Sub(start))
	}
	s.see(at(5), 6, 2)
	s.hit(at(5), 1)
	if s.event != at(5) {
		t.Error("an access to a watched word was not seen")
	}
}
