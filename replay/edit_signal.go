package replay

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"syscall"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// signalMove takes asynchronous signals out of their places in a thread's log, each with all
// events of its handler.
type signalMove struct {
	thread uint32
	blocks []eventBlock // in the order of the log
	until  uint64       // they come after this event; 0: never
	// raised: their events are after until, and are skipped until Stopped.Raise.
	raised bool
}

// eventBlock has the ordinals of a signal and of its handler's end.
type eventBlock struct{ first, last uint64 }

func (m *signalMove) events() (n uint64) {
	for _, b := range m.blocks {
		n += b.last - b.first + 1
	}
	return n
}

func (m *signalMove) dropped() uint64 {
	if m.until != 0 {
		return 0
	}
	return m.events()
}

func (m *signalMove) moves(ordinal uint64) bool {
	return slices.ContainsFunc(m.blocks, func(b eventBlock) bool { return ordinal >= b.first && ordinal <= b.last })
}

// planDelay finds the events of a signal's handler.
func (f *free) planDelay(rec *record.Recording, e *Edit) error {
	block := eventBlock{first: e.At.Ordinal}
	cursor := rec.Log.Cursor(e.At.Thread)
	depth, ordinal := 0, uint64(0)
	for block.last == 0 || e.Until != 0 && ordinal < e.Until {
		event, err := cursor.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return tracee.Inputf("replay: %w", err)
		}
		ordinal++
		switch {
		case ordinal < block.first || block.last != 0:
		case ordinal == block.first && (event.Kind != eventlog.KindSignal || len(event.Args) == 0 || event.Args[0] == signalFault):
			return tracee.Inputf("replay: event %d of thread %d is no signal that a process sent", block.first, e.At.Thread)
		case event.Kind == eventlog.KindSignal:
			depth++
		case event.Kind == eventlog.KindSignalEnd:
			if depth--; depth == 0 {
				block.last = ordinal
			}
		}
	}
	if e.Raised && ordinal >= block.first {
		if block.last == 0 {
			block.last = ordinal
		}
		if e.Until == 0 || e.Until >= block.first && e.Until <= block.last || e.Until > ordinal {
			return tracee.Inputf("replay: the signal that is event %d of thread %d cannot be raised after event %d", block.first, e.At.Thread, e.Until)
		}
		return f.addMove(e, block)
	}
	switch {
	case ordinal < block.first:
		return tracee.Inputf("replay: thread %d has %d events, and no signal as its event %d", e.At.Thread, ordinal, block.first)
	case block.last == 0 && e.Until != 0:
		return tracee.Inputf("replay: the handler of event %d of thread %d did not return, so the signal cannot come later", block.first, e.At.Thread)
	case block.last == 0:
		block.last = ordinal
	case e.Until != 0 && (e.Until <= block.last || e.Until > ordinal):
		return tracee.Inputf("replay: the signal that is event %d of thread %d cannot come after event %d: its handler ends with event %d, and the thread has %d",
			block.first, e.At.Thread, e.Until, block.last, ordinal)
	}
	return f.addMove(e, block)
}

// addMove adds a signal. Those that come after one event keep their order.
func (f *free) addMove(e *Edit, block eventBlock) error {
	m := f.move
	if m == nil {
		m = &signalMove{thread: e.At.Thread, until: e.Until, raised: e.Raised}
		f.move = m
	}
	if m.thread != e.At.Thread || m.until != e.Until || m.raised != e.Raised {
		return tracee.Inputf("replay: signals can be delayed in one thread, and until one event")
	}
	if n := len(m.blocks); n > 0 && m.blocks[n-1].last >= block.first {
		return tracee.Inputf("replay: the signal that is event %d of thread %d comes before one that is delayed, or in its handler", block.first, m.thread)
	}
	m.blocks = append(m.blocks, block)
	return nil
}

// planMove moves the signals in the order of all threads.
func (f *free) planMove(rec *record.Recording) error {
	if f.move == nil {
		return nil
	}
	if f.schedule == nil {
		var err error
		if f.schedule, err = rec.Log.Schedule(); len(f.schedule) == 0 {
			return tracee.Inputf("replay: %w", err)
		}
	}
	f.schedule = f.move.reschedule(f.schedule)
	return nil
}

// Places of signals: enum dg_signal_place.
const (
	signalEvent = 1
	signalFault = 3
)

// reschedule moves the events in the order of all threads.
func (m *signalMove) reschedule(s eventlog.Schedule) eventlog.Schedule {
	var out eventlog.Schedule
	done := uint64(0)
	for _, turn := range s {
		if turn.Thread != m.thread {
			out = append(out, turn)
			continue
		}
		for range turn.Events {
			done++
			if m.moves(done) {
				continue
			}
			out = out.Add(m.thread)
			if done == m.until {
				for range m.events() {
					out = out.Add(m.thread)
				}
			}
		}
	}
	return out
}

// apply moves the events in the image.
func (m *signalMove) apply(s *recorded.Stage) error {
	r, ok := s.Layout.Threads[m.thread]
	if !ok {
		return tracee.Inputf("replay: thread %d has no events", m.thread)
	}
	start, end := int64(r.Start-eventlog.ImageBase), int64(r.End-eventlog.ImageBase)
	b := make([]byte, end-start)
	if _, err := s.Image.ReadAt(b, start); err != nil {
		return fmt.Errorf("replay: image: %w", err)
	}
	offsets, err := offsetsOf(b)
	if err != nil {
		return err
	}
	var moved []byte
	for _, block := range m.blocks {
		signal := append([]byte(nil), b[offsets[block.first-1]:offsets[block.last]]...)
		change := behindEvent
		if m.raised {
			change = whenRaised
		}
		if err := change(signal); err != nil {
			return err
		}
		moved = append(moved, signal...)
	}
	var out []byte
	for i := range len(offsets) - 1 {
		ordinal := uint64(i + 1)
		if !m.moves(ordinal) {
			out = append(out, b[offsets[i]:offsets[i+1]]...)
		}
		if ordinal == m.until {
			out = append(out, moved...)
		}
	}
	if _, err := s.Image.WriteAt(out, start); err != nil {
		return fmt.Errorf("replay: image: %w", err)
	}
	return m.shorten(s, r.Start+evidence.Addr(len(out)))
}

// offsetsOf returns the offsets at which the events in b begin, and at which the last ends.
func offsetsOf(b []byte) ([]int, error) {
	offsets := []int{0}
	for at := 0; at < len(b); {
		_, n, err := eventlog.DecodeEvent(b[at:])
		if err != nil {
			return nil, fmt.Errorf("replay: image: %w", err)
		}
		at += n
		offsets = append(offsets, at)
	}
	return offsets, nil
}

// behindEvent changes the signal that is the first event of b into one that arrives right after
// the event before it.
func behindEvent(b []byte) error {
	const header = 48 // sizeof(struct dg_event)
	if len(b) < header+8 {
		return tracee.Inputf("replay: a signal of %d bytes", len(b))
	}
	le.PutUint64(b[header:], signalEvent)
	return nil
}

// whenRaised marks the events of b as those of a signal that the controller raises.
func whenRaised(b []byte) error {
	const flags = 5 // of struct dg_event
	offsets, err := offsetsOf(b)
	if err != nil {
		return err
	}
	for _, at := range offsets[:len(offsets)-1] {
		b[at+flags] |= agent.EventRaised
	}
	return nil
}

// Raise delivers a signal to the thread that was waited for, before its next instruction. The
// signal is an event of another recording, or one of this recording that an Edit with Raised has
// removed from its place. Only a Hook or a Break may raise. The error is an *ExperimentError if
// the program has no handler for it or blocks it there.
func (s *Stopped) Raise(e *eventlog.Event) error {
	if s.thread == nil || !s.c.free() {
		return tracee.Inputf("replay: a signal can be raised in a thread of a free replay only")
	}
	if e.Kind != eventlog.KindSignal || len(e.Payloads) == 0 || len(e.Payloads[0].Data) != len(ptrace.Siginfo{}) {
		return tracee.Inputf("replay: event %d of thread %d is no signal", e.Ordinal, e.Thread)
	}
	if s.c.attempt.free.able < ableToRaise {
		return tracee.Inputf("replay: the library that recorded %s cannot raise signals: record it again", s.c.Rec.Dir)
	}
	signal := syscall.Signal(e.Object)
	caught, err := catches(s.thread.TID, signal)
	if err != nil {
		return err
	}
	if !caught {
		return &ExperimentError{What: fmt.Sprintf("%s is blocked there, or has no handler", wording.Signal(int(signal))), Moment: s.Moment}
	}
	r := &tracee.PendingSignal{Signal: signal}
	copy(r.Info[:], e.Payloads[0].Data)
	s.thread.Raise, s.c.attempt.free.changed = r, true
	return nil
}

// shorten writes the new end of the thread's events.
func (m *signalMove) shorten(s *recorded.Stage, end evidence.Addr) error {
	header, err := tracee.ReadStruct[agent.RawReplayHeader](s.Image, 0)
	if err != nil {
		return fmt.Errorf("replay: image: %w", err)
	}
	at := int64(header.Table) - int64(eventlog.ImageBase) + int64(m.thread)*int64(binary.Size(agent.RawReplayThread{}))
	entry, err := tracee.ReadStruct[agent.RawReplayThread](s.Image, uint64(at))
	if err != nil {
		return fmt.Errorf("replay: image: %w", err)
	}
	entry.End = uint64(end)
	return writeImage(s.Image, at, entry)
}

func writeImage(w io.WriterAt, at int64, v any) error {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		return err
	}
	if _, err := w.WriteAt(b, at); err != nil {
		return fmt.Errorf("replay: image: %w", err)
	}
	return nil
}
