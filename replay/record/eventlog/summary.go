package eventlog

import (
	"cmp"
	"io"
	"maps"
	"slices"
)

// Summary counts the contents of a log. It counts everything that can be read, including events
// after the end of the order of all threads.
type Summary struct {
	Events  uint64
	Threads []ThreadSummary // by index
	Kinds   []KindCount     // the most frequent first
	Calls   []CallCount     // system calls, the most frequent first
	Limits  []Limit         // of DG_EV_LIMIT, in the threads' order
}

// ThreadSummary counts the events of a thread.
type ThreadSummary struct {
	Index uint32
	// Parent is the index of the thread that created it, TID its id in the kernel; 0 if its
	// first event is missing.
	Parent uint32
	TID    uint64
	Events uint64
	Bytes  int64
	// Skipped counts mutexes taken without an event.
	Skipped uint64
	// Ended: its last event is its end, or that of the process.
	Ended bool
	// Err says that its events end too early: a *CutError or a *CorruptError.
	Err error
}

// KindCount counts the events of a kind.
type KindCount struct {
	Kind   Kind
	Events uint64
	Bytes  int64
}

// CallCount counts the events of a system call.
type CallCount struct {
	Number uint64
	Events uint64
	Errors uint64 // of these, those that failed
	Bytes  int64
}

// mostLimits is the maximum number of limits in a summary: a call that the table lacks is a
// limit each time it is made.
const mostLimits = 1000

// Summarize reads the whole log. A failure to read the file is an error. Err of a thread
// reports damage in the file.
func (l *Log) Summarize() (*Summary, error) {
	s := new(Summary)
	kinds, calls := map[Kind]*KindCount{}, map[uint64]*CallCount{}
	for _, index := range l.indices {
		t := ThreadSummary{Index: index}
		for c := l.Cursor(index); ; {
			e, err := c.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				if !Damaged(err) {
					return nil, err
				}
				t.Err = err
				break
			}
			size := int64(len(c.raw))
			t.countEvent(e, size)
			entry(kinds, e.Kind, KindCount{Kind: e.Kind}).countSize(size)
			if e.Kind == KindSyscall {
				entry(calls, e.Object, CallCount{Number: e.Object}).countCall(e, size)
			}
			if e.Kind == KindLimit && len(s.Limits) < mostLimits {
				s.Limits = append(s.Limits, limitOf(e))
			}
		}
		s.Events += t.Events
		s.Threads = append(s.Threads, t)
	}
	s.Kinds = values(kinds, func(a, b *KindCount) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Kind, b.Kind))
	})
	s.Calls = values(calls, func(a, b *CallCount) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Number, b.Number))
	})
	return s, nil
}

func (t *ThreadSummary) countEvent(e *Event, size int64) {
	t.Events++
	t.Bytes += size
	t.Skipped += e.Skipped
	t.Ended = e.Kind == KindExit || e.Kind == KindEnd
	if e.Kind == KindStart && len(e.Args) >= 2 {
		t.Parent, t.TID = uint32(e.Args[0]), e.Args[1]
	}
}

func (k *KindCount) countSize(size int64) {
	k.Events++
	k.Bytes += size
}

func (c *CallCount) countCall(e *Event, size int64) {
	c.Events++
	c.Bytes += size
	if e.Result < 0 && e.Result > -4096 {
		c.Errors++
	}
}

func limitOf(e *Event) Limit {
	limit := Limit{Kind: LimitKind(e.Object).String(), Thread: e.Thread, Ordinal: e.Ordinal}
	for _, p := range e.Payloads {
		if p.Kind == PayloadText {
			limit.Text = string(p.Data)
		}
	}
	return limit
}

func entry[K comparable, V any](m map[K]*V, k K, fresh V) *V {
	v := m[k]
	if v == nil {
		v = &fresh
		m[k] = v
	}
	return v
}

func values[K comparable, V any](m map[K]*V, order func(a, b *V) int) []V {
	var list []V
	for _, v := range slices.SortedFunc(maps.Values(m), order) {
		list = append(list, *v)
	}
	return list
}
