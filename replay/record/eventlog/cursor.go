package eventlog

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"diagnose/agent"
)

// firstBuffer is how many bytes of a log a cursor buffers, unless an event is larger.
const firstBuffer = 16384

// Cursor iterates over the events of one thread.
type Cursor struct {
	log    *Log
	thread *logThread
	event  Event
	raw    []byte // the event as it is in the log
	short  bool   // raw is a short one
	err    error

	extent int   // index of the extent that is read
	at     int64 // in the file, after the last event
	limit  int64 // end of the extent in the file
	buffer []byte
	start  int64 // of the buffer, in the file
	// bases are the events of the extent that short events have referred to, by offset.
	bases map[int64]*Event
}

// Cursor returns a cursor before a thread's first event.
func (l *Log) Cursor(thread uint32) *Cursor {
	c := &Cursor{log: l, thread: l.threads[thread], extent: -1}
	c.event.Thread = thread
	if c.thread == nil {
		c.thread = new(logThread)
	}
	return c
}

// Events iterates over the events of a thread. An event and its data are valid until the next.
// The last pair has the error, if there is one.
func (l *Log) Events(thread uint32) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		for c := l.Cursor(thread); ; {
			e, err := c.Next()
			if err == io.EOF {
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Next returns the thread's next event, which is valid until the next call. The error is io.EOF
// after the last event of a complete log, a *CutError where the log ends too early, and a
// *CorruptError where no recorder can have written the data. Later calls return the same error.
func (c *Cursor) Next() (*Event, error) {
	if c.err != nil {
		return nil, c.err
	}
	if c.err = c.read(); c.err != nil {
		return nil, c.err
	}
	return &c.event, nil
}

func (c *Cursor) read() error {
	for {
		head, err := c.head()
		if err != nil {
			return err
		}
		if head != 0 {
			return c.take(head)
		}
		if err := c.nextExtent(); err != nil {
			return err
		}
	}
}

// head returns the first word of the event at the cursor, 0 if the extent has no more.
func (c *Cursor) head() (uint32, error) {
	if c.limit-c.at < shortHeader {
		return 0, nil
	}
	b, err := c.bytes(8)
	if err != nil {
		return 0, err
	}
	return le.Uint32(b), nil
}

func (c *Cursor) take(head uint32) error {
	length, least := int64(head), int64(eventHeaderSize)
	if c.short = head%8 == agent.Short; c.short {
		length, least = int64(head&0xfff8), shortHeader
	}
	if length < least || length%8 != 0 || length > c.limit-c.at {
		return c.corrupt("event of %d bytes in an extent that has %d left", length, c.limit-c.at)
	}
	last, first := c.event.Ticket, c.event.Ordinal == 0
	if err := c.decode(length, int64(head>>16)*8); err != nil {
		return err
	}
	if !first && c.event.Ticket <= last {
		return c.corrupt("thread %d, event %d: ticket %d follows %d", c.event.Thread, c.event.Ordinal+1, c.event.Ticket, last)
	}
	c.event.Ordinal++
	c.event.Offset = c.at
	c.at += length
	return nil
}

// decode decodes the event at the cursor. The base of a short event is at an offset of the
// extent.
func (c *Cursor) decode(length, base int64) error {
	b, err := c.bytes(length)
	if err != nil {
		return err
	}
	c.raw = b
	if !c.short {
		err = c.event.decode(b)
	} else {
		var e *Event
		if e, err = c.base(base); err != nil {
			return err
		}
		err = c.event.decodeShort(b, e)
	}
	if err != nil {
		return c.corrupt("%v", err)
	}
	return nil
}

func (c *Cursor) nextExtent() error {
	if c.extent+1 >= len(c.thread.extents) {
		return c.end()
	}
	c.extent++
	clear(c.bases)
	e := c.thread.extents[c.extent]
	c.at, c.limit = e.offset+extentHeaderSize, e.offset+e.size
	return nil
}

func (c *Cursor) end() error {
	switch {
	case c.thread.problem != nil:
		return c.thread.problem
	case c.log.cut && c.event.Kind != KindExit:
		return &CutError{c.log.name, c.log.size, fmt.Sprintf("thread %d may have had events after its event %d", c.event.Thread, c.event.Ordinal)}
	}
	return io.EOF
}

// bytes returns n bytes at the cursor. They are within the extent.
func (c *Cursor) bytes(n int64) ([]byte, error) {
	if n > c.log.size-c.at {
		return nil, &CutError{c.log.name, c.log.size, fmt.Sprintf("in event %d of thread %d", c.event.Ordinal+1, c.event.Thread)}
	}
	if in := c.at - c.start; in >= 0 && in+n <= int64(len(c.buffer)) {
		return c.buffer[in : in+n], nil
	}
	want := min(max(n, firstBuffer), c.limit-c.at, c.log.size-c.at)
	if int64(cap(c.buffer)) < want {
		if ok, err := c.log.holds(c.at, want); err != nil {
			return nil, err
		} else if !ok {
			return nil, c.corrupt("event of %d bytes, of which the file has few", want)
		}
		c.buffer = make([]byte, want)
	}
	c.buffer, c.start = c.buffer[:want], c.at
	got, err := c.log.file.ReadAt(c.buffer, c.at)
	if int64(got) < n {
		c.buffer = c.buffer[:0]
		if err == nil || errors.Is(err, io.EOF) {
			return nil, &CutError{c.log.name, c.at + int64(got), "the file shrank while it was read"}
		}
		return nil, &InputError{fmt.Errorf("%s: %w", c.log.name, err)}
	}
	c.buffer = c.buffer[:got]
	return c.buffer[:n], nil
}
