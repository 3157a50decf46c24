package eventlog

import (
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
)

// Turn is a number of consecutive events of a thread: struct dg_run.
type Turn struct {
	Thread uint32
	Events uint32
}

// Schedule is the order of events: which thread runs, and for how many events.
type Schedule []Turn

// Ordered iterates over the events of all threads by ticket. This order agrees with every order
// that the program's threads established among themselves. An event is valid until the next.
//
// Events that are pending have no place in it.
//
// It ends where the first thread's log ends too early, with that error: later events may depend
// on missing ones. Two events with one ticket are a *CorruptError, and so are events of a
// thread that no earlier event creates.
func (l *Log) Ordered() iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		done := uint64(0)
		q, unread, err := l.cursors()
		created := map[uint32]bool{}
		if len(q) > 0 {
			created[q[0].event.Thread] = true // the first thread of the process, or the one that forked it
		}
		for err == nil && len(q) > 0 && !q[0].event.Pending() {
			if err = l.checkFirst(q); err != nil {
				break
			}
			if err = l.checkBegun(&q[0].event, created); err != nil {
				break
			}
			c := q[0]
			if !yield(&c.event, nil) {
				return
			}
			if done++; done == l.most {
				return
			}
			if err = l.checkCreated(&c.event, unread); err != nil {
				break
			}
			if _, err = c.Next(); err == io.EOF {
				heap.Pop(&q)
				err = nil
			} else if err == nil {
				heap.Fix(&q, 0)
			}
		}
		for _, thread := range l.indices {
			if err == nil {
				err = unread[thread]
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// checkFirst checks that the lowest ticket is unique. If it were not, the next cursor would be
// among the first one's children in the heap.
func (l *Log) checkFirst(q queue) error {
	first := &q[0].event
	for _, c := range q[1:min(3, len(q))] {
		if e := &c.event; e.Ticket == first.Ticket {
			return &CorruptError{l.name, e.Offset, fmt.Sprintf("thread %d, event %d: ticket %d is thread %d's event %d as well",
				e.Thread, e.Ordinal, e.Ticket, first.Thread, first.Ordinal)}
		}
	}
	return nil
}

// checkBegun checks that a thread with events has been created. Otherwise a replay cannot give
// it the right to run.
func (l *Log) checkBegun(e *Event, created map[uint32]bool) error {
	if e.Ordinal == 1 && !created[e.Thread] {
		return &CorruptError{l.name, e.Offset, fmt.Sprintf("thread %d begins, and no event before that creates it", e.Thread)}
	}
	if e.Kind == KindCreate && e.Result == 0 && e.Object < MostThreads {
		created[uint32(e.Object)] = true
	}
	return nil
}

// checkCreated ends the order where a thread is created whose events are all lost.
func (l *Log) checkCreated(e *Event, unread map[uint32]error) error {
	if e.Kind != KindCreate || e.Result != 0 || e.Object >= MostThreads {
		return nil
	}
	thread := uint32(e.Object)
	if l.cut && l.threads[thread] == nil {
		return &CutError{l.name, l.size, fmt.Sprintf("thread %d has no events", thread)}
	}
	return unread[thread]
}

// cursors returns a cursor before the first event of every thread that has one. unread are the
// threads whose first event is lost. The order ends when one of them is created; the main
// thread is not created.
func (l *Log) cursors() (q queue, unread map[uint32]error, err error) {
	unread = map[uint32]error{}
	for _, thread := range l.indices {
		c := l.Cursor(thread)
		switch _, err := c.Next(); {
		case err == nil:
			q = append(q, c)
		case err == io.EOF:
		case thread == mainThread:
			return nil, nil, err
		default:
			unread[thread] = err
		}
	}
	heap.Init(&q)
	if len(q) == 0 {
		return nil, nil, l.Cut()
	}
	return q, unread, nil
}

// queue is a heap of the cursors by ticket.
type queue []*Cursor

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].event.Ticket < q[j].event.Ticket }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(c any)        { *q = append(*q, c.(*Cursor)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}

// Schedule returns the recorded order. If Ordered fails, it returns the order up to there and
// the error.
func (l *Log) Schedule() (Schedule, error) {
	s, _, err := l.ScheduleAndLimits()
	return s, err
}

// ScheduleAndLimits returns the schedule and the limits that it passes, at most as many as a
// Summary has.
func (l *Log) ScheduleAndLimits() (s Schedule, limits []Limit, err error) {
	for e, err := range l.Ordered() {
		if err != nil {
			return s, limits, err
		}
		s = s.Add(e.Thread)
		if e.Kind == KindLimit && len(limits) < mostLimits {
			limits = append(limits, limitOf(e))
		}
	}
	return s, limits, nil
}

// Add appends one event of a thread.
func (s Schedule) Add(thread uint32) Schedule {
	if last := len(s) - 1; last >= 0 && s[last].Thread == thread && s[last].Events < math.MaxUint32 {
		s[last].Events++
		return s
	}
	return append(s, Turn{thread, 1})
}

// Events returns the number of events by thread.
func (s Schedule) Events() map[uint32]uint64 {
	counts := map[uint32]uint64{}
	for _, r := range s {
		counts[r.Thread] += uint64(r.Events)
	}
	return counts
}

// Common returns the number of events by thread of the longest beginning that two schedules share.
func (s Schedule) Common(t Schedule) map[uint32]uint64 {
	counts := map[uint32]uint64{}
	var left, right uint32 // events of the turns s[i] and t[j] that were counted
	for i, j := 0, 0; i < len(s) && j < len(t) && s[i].Thread == t[j].Thread; {
		n := min(s[i].Events-left, t[j].Events-right)
		counts[s[i].Thread] += uint64(n)
		if left += n; left == s[i].Events {
			i, left = i+1, 0
		}
		if right += n; right == t[j].Events {
			j, right = j+1, 0
		}
	}
	return counts
}

// String returns the text form: one turn a line, "THREAD EVENTS".
func (s Schedule) String() string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, "%d %d\n", r.Thread, r.Events)
	}
	return b.String()
}

// ParseSchedule parses the text form. The text after a # is a comment.
func ParseSchedule(text string) (Schedule, error) {
	var s Schedule
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		r, err := parseTurn(fields)
		if err != nil {
			return nil, fmt.Errorf("record: schedule, line %d: %w", number, err)
		}
		s = append(s, r)
	}
	return s, nil
}

func parseTurn(fields []string) (Turn, error) {
	if len(fields) != 2 {
		return Turn{}, errors.New("is not a thread and a number of events")
	}
	thread, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil {
		return Turn{}, err
	}
	events, err := strconv.ParseUint(fields[1], 10, 32)
	if err != nil {
		return Turn{}, err
	}
	r := Turn{uint32(thread), uint32(events)}
	return r, r.check()
}

func (r Turn) check() error {
	if r.Thread == 0 || r.Thread >= MostThreads || r.Events == 0 {
		return fmt.Errorf("%d events of thread %d", r.Events, r.Thread)
	}
	return nil
}

// MarshalJSON encodes a turn as [thread, events].
func (r Turn) MarshalJSON() ([]byte, error) { return json.Marshal([2]uint32{r.Thread, r.Events}) }

// UnmarshalJSON decodes [thread, events].
func (r *Turn) UnmarshalJSON(data []byte) error {
	var pair []uint32
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("a turn of %d numbers", len(pair))
	}
	*r = Turn{pair[0], pair[1]}
	return r.check()
}
