package agent

import (
	"cmp"
	"slices"
)

// Lowest keeps of any number of objects those with the lowest addresses, once
// each, in bounded memory. So the result does not depend on the order in
// which workers come upon them.
type Lowest struct {
	// Limit is how many are kept.
	Limit int
	// Dropped counts the others.
	Dropped int
	objects []Object
}

// Add takes an object.
func (l *Lowest) Add(o Object) {
	l.objects = append(l.objects, o)
	if len(l.objects) > 2*l.Limit+16 {
		l.cut()
	}
}

// Join takes what another one kept.
func (l *Lowest) Join(other *Lowest) {
	l.objects = append(l.objects, other.objects...)
	l.Dropped += other.Dropped
	l.cut()
}

// Objects returns the kept objects in address order.
func (l *Lowest) Objects() []Object {
	l.cut()
	return l.objects
}

func (l *Lowest) cut() {
	slices.SortStableFunc(l.objects, func(a, b Object) int { return cmp.Compare(a.Addr, b.Addr) })
	l.objects = slices.CompactFunc(l.objects, func(a, b Object) bool { return a.Addr == b.Addr })
	if n := len(l.objects) - l.Limit; n > 0 {
		l.Dropped += n
		l.objects = l.objects[:l.Limit]
	}
}

// Tally is what one worker of a check counts and keeps.
type Tally struct {
	// Damaged are the objects to be described.
	Damaged Lowest
	// Checked counts the objects that were compared, Unread those that could
	// not be read.
	Checked, Unread uint64
}

// Join takes what another worker counted and kept.
func (t *Tally) Join(other *Tally) {
	t.Damaged.Join(&other.Damaged)
	t.Checked += other.Checked
	t.Unread += other.Unread
}
