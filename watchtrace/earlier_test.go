package watchtrace

import (
	"testing"

	"diagnose/evidence"
)

// TestHitsBefore: the number of hits before a checkpoint is known only where the log leaves no doubt.
func TestHitsBefore(t *testing.T) {
	at := func(hit, position uint64) *evidence.Access {
		return &evidence.Access{Hit: hit, Position: position, PC: 1}
	}
	changed := &evidence.Access{Hit: 2, Position: 9, By: evidence.ByCall}
	for _, c := range []struct {
		name   string
		seen   []*evidence.Access
		events uint64
		hits   uint64
		known  bool
	}{
		{"between two", []*evidence.Access{at(0, 3), at(1, 3), at(2, 7)}, 5, 2, true},
		{"before all", []*evidence.Access{at(0, 3)}, 2, 0, true},
		{"after all", []*evidence.Access{at(0, 3)}, 5, 0, false},
		{"no access", nil, 5, 0, false},
		{"at the same event", []*evidence.Access{at(0, 3), at(1, 5), at(2, 7)}, 5, 1, true},
		{"one is missing there", []*evidence.Access{at(0, 3), at(2, 7)}, 5, 0, false},
		{"the first is missing", []*evidence.Access{at(1, 7)}, 5, 0, false},
		{"not in order", []*evidence.Access{at(0, 3), at(1, 7), at(2, 4)}, 5, 0, false},
		{"a change that is noticed after it", []*evidence.Access{at(0, 3), at(1, 7), changed}, 5, 0, false},
		{"a change that was noticed before it", []*evidence.Access{at(0, 3), at(1, 7), changed, at(3, 11)}, 10, 3, true},
	} {
		hits, known := hitsBefore(c.seen, c.events)
		if known != c.known || known && hits != c.hits {
			t.Errorf("%s: %d, %v; want %d, %v", c.name, hits, known, c.hits, c.known)
		}
	}
}
