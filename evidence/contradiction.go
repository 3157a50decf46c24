package evidence

import "fmt"

// ContradictionKind says in what a log of accesses contradicts itself.
type ContradictionKind string

// The kinds of contradiction.
const (
	// ContradictedValue: an access found another value than the one before it had left.
	ContradictedValue ContradictionKind = "value"
	// ContradictedOverlap: two watched words share bytes, and their accesses disagree on them.
	ContradictedOverlap ContradictionKind = "overlap"
	// ContradictedChange: a value changed, and neither an access nor a system call did it.
	ContradictedChange ContradictionKind = "change"
	// ContradictedTurn: two threads had the right to run at once, or the order of the turns is not
	// that of the events.
	ContradictedTurn ContradictionKind = "turn"
)

// Contradiction is the first pair of accesses of a log that cannot both have happened in that order.
// It is a defect of the tool, and nothing follows from such a log.
type Contradiction struct {
	Kind ContradictionKind `json:"kind"`
	// Variable is the later access's, Address that of its watched word.
	Variable string `json:"variable"`
	Address  Addr   `json:"address"`
	// Earlier left the value Left in the word, Later found Found.
	Earlier Moment `json:"earlier"`
	Later   Moment `json:"later"`
	Left    uint64 `json:"left"`
	Found   uint64 `json:"found"`
}

// words continues a sentence with the accesses; nil has none.
func (c *Contradiction) words() string {
	if c == nil {
		return ""
	}
	switch c.Kind {
	case ContradictedTurn:
		return fmt.Sprintf(": accesses of threads %d and %d are not in the order in which the threads ran (turns %d and %d)",
			c.Earlier.Thread, c.Later.Thread, c.Left, c.Found)
	case ContradictedChange:
		return fmt.Sprintf(": %s changed from %#x to %#x after event %d of thread %d, and no logged access and no system call did it",
			c.Variable, c.Left, c.Found, c.Earlier.Ordinal, c.Earlier.Thread)
	}
	return fmt.Sprintf(": thread %d at %v found %#x in %s, and the logged access before, of thread %d at %v, had left %#x",
		c.Later.Thread, c.Later.PC, c.Found, c.Variable, c.Earlier.Thread, c.Earlier.PC, c.Left)
}

// Limit is the limit of a report that has the contradiction.
func (c *Contradiction) Limit() Limit {
	return Limit{Code: LimitLogContradicted, Names: []string{c.Variable}, Addr: c.Address, Severe: true, Contradiction: c}
}

// Call is a system call that may have changed memory without an access that passes see: the kernel
// wrote there, or mapped it again.
type Call struct {
	// Position counts the events up to and including it.
	Position uint64
	Start    Addr
	Size     uint64
}

// Contradicts looks for accesses that cannot have happened in the log's order: the value that an
// access finds is the one that the last write left. System calls may have changed it, and so may
// code of which a variable's accesses were not all seen. nil: there are none.
func (l *AccessLog) Contradicts() *Contradiction {
	c := checker{log: l, words: map[wordKey]*checkedWord{}}
	for i := range l.Accesses {
		a := &l.Accesses[i]
		if found := c.turn(a); found != nil {
			return found
		}
		if l.Variables[a.Variable].Partial() {
			continue
		}
		if found := c.value(a); found != nil {
			return found
		}
	}
	return nil
}

// Unseen reports whether the access stands for a change that no instruction of the process made.
func (a *Access) Unseen() bool { return a.By == ByCall && a.PC == 0 }

// moment is where the access was made.
func (a *Access) moment() Moment { return Moment{Thread: a.Thread, Ordinal: a.Ordinal, PC: a.PC} }

type wordKey struct {
	variable int32
	offset   uint32
}

type checkedWord struct {
	start Addr
	size  uint8
	last  *Access // nil: there was none yet
	// called: the kernel wrote to it. When that was seen depends on the word's own accesses.
	called bool
	others []*checkedWord // that share bytes with it
}

type checker struct {
	log    *AccessLog
	words  map[wordKey]*checkedWord
	before *Access // the last one
}

func (c *checker) contradiction(kind ContradictionKind, earlier, later *Access, left, found uint64) *Contradiction {
	v := &c.log.Variables[later.Variable]
	x := &Contradiction{Kind: kind, Variable: v.Name, Address: v.Address + Addr(later.Offset), Later: later.moment(), Left: left, Found: found}
	if earlier != nil {
		x.Earlier = earlier.moment()
	}
	return x
}

// turn compares the order of the turns with that of the events: one thread has a turn. An access whose
// turn is not known may have been merged at another place among those of its position.
func (c *checker) turn(a *Access) *Contradiction {
	b := c.before
	if c.before = a; b == nil || b.Turn == 0 || a.Turn == 0 {
		return nil
	}
	if a.Position >= b.Position && (a.Turn > b.Turn || a.Turn == b.Turn && a.Thread == b.Thread) {
		return nil
	}
	return c.contradiction(ContradictedTurn, b, a, b.Turn, a.Turn)
}

func (c *checker) value(a *Access) *Contradiction {
	w := c.word(a)
	last := w.last
	if a.Unseen() && !c.explained(w, a) {
		return c.contradiction(ContradictedChange, last, a, a.Old, a.New)
	}
	byKernel := a.By == ByCall || last != nil && last.By == ByCall
	if last != nil && !byKernel && last.New != a.Old {
		return c.contradiction(ContradictedValue, last, a, last.New, a.Old)
	}
	w.called = w.called || a.By == ByCall
	if last == nil || !sameSection(last, a) {
		for _, o := range w.others {
			if left, found, differ := w.disagrees(o, a); differ {
				return c.contradiction(ContradictedOverlap, o.last, a, left, found)
			}
		}
	}
	w.last = a
	return nil
}

func (c *checker) word(a *Access) *checkedWord {
	key := wordKey{a.Variable, a.Offset}
	w := c.words[key]
	if w != nil {
		return w
	}
	w = &checkedWord{start: c.log.Variables[a.Variable].Address + Addr(a.Offset), size: a.Size}
	for _, o := range c.words {
		if o.start < w.start+Addr(w.size) && w.start < o.start+Addr(o.size) {
			o.others, w.others = append(o.others, w), append(w.others, o)
		}
	}
	c.words[key] = w
	return w
}

// explained reports whether a change without an access may be a system call's. Zeros are what
// memory has that was given back to the kernel, which the heap does without an event; before the
// first event the dynamic linker maps objects.
func (c *checker) explained(w *checkedWord, a *Access) bool {
	if c.log.Others || a.New == 0 || a.New == a.Old || a.Position == 0 {
		return true
	}
	since := uint64(0)
	if w.last != nil {
		since = w.last.Position
	}
	for _, x := range c.log.Calls {
		if x.Position >= since && x.Position <= a.Position+1 && x.Start < w.start+Addr(w.size) && uint64(w.start) < uint64(x.Start)+x.Size {
			return true
		}
	}
	return false
}

// sameSection reports whether no event of the thread and no other thread's turn is between two
// accesses. Which of them was first is then known only if one pass saw both.
func sameSection(a, b *Access) bool {
	return a.Turn == b.Turn && a.Thread == b.Thread && a.Ordinal == b.Ordinal
}

// disagrees compares the bytes that a word shares with another one, as the other's last access left
// them and an access finds them.
func (w *checkedWord) disagrees(o *checkedWord, a *Access) (left, found uint64, differ bool) {
	b := o.last
	if b == nil || a.Turn == 0 || b.Turn == 0 || w.called || o.called || sameSection(a, b) {
		return 0, 0, false
	}
	start, end := max(w.start, o.start), min(w.start+Addr(w.size), o.start+Addr(o.size))
	mask := ^uint64(0) >> (64 - 8*(end-start))
	left, found = b.New>>(8*(start-o.start))&mask, a.Old>>(8*(start-w.start))&mask
	return left, found, left != found
}
