package evidence

import "fmt"

// Schedule is what replays of a recording need, besides the order of its events, to
// reach the recorded failure: places where a thread waits for others. Where memory
// alone decides, these are often the bug.
type Schedule struct {
	// Preemptions are in the order of the threads' events.
	Preemptions []Preemption `json:"preemptions"`
	// By says who found them; Attempts is how many replays that took.
	By       string `json:"by"`
	Attempts int    `json:"attempts"`
	// Failed of Runs replays without any of them failed as recorded.
	Failed int `json:"failed_without_all"`
	Runs   int `json:"runs_without_all"`
}

// Preemption is a place where a thread waits until others are further.
type Preemption struct {
	Thread ThreadRef `json:"thread"`
	// Event is the thread's event before, from 1.
	Event uint64 `json:"event"`
	// The name of that event, if the thread waits right after it. If it is empty, the
	// thread waits right before the instruction at Site, when it gets there for the
	// Arrival-th time.
	Behind  string `json:"behind,omitempty"`
	Arrival uint64 `json:"arrival,omitempty"`
	Site    *Site  `json:"site,omitempty"`
	// Until counts the events of all threads that are done when it continues. Last
	// names the last of them, which LastThread made at LastSite.
	Until      uint64    `json:"until"`
	Last       string    `json:"last,omitempty"`
	LastThread ThreadRef `json:"last_thread"`
	LastSite   *Site     `json:"last_site,omitempty"`
	// Failed of Runs replays without this one, and with the others, failed as recorded.
	Failed int `json:"failed_without"`
	Runs   int `json:"runs_without"`
}

// Needed reports whether replays without it do not fail, as far as was tried.
func (p *Preemption) Needed() bool { return p.Runs > 0 && p.Failed == 0 }

func (s *Schedule) check() error {
	if s == nil {
		return nil
	}
	if len(s.Preemptions) == 0 || s.Failed > s.Runs {
		return fmt.Errorf("a schedule has %d preemptions, and %d of %d runs failed", len(s.Preemptions), s.Failed, s.Runs)
	}
	for i := range s.Preemptions {
		if p := &s.Preemptions[i]; p.Thread.Number == 0 || p.Event == 0 || p.Failed > p.Runs {
			return fmt.Errorf("preemption %d: thread %d, event %d, %d of %d runs", i+1, p.Thread.Number, p.Event, p.Failed, p.Runs)
		}
	}
	return nil
}
