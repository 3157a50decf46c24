package replay

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/replay/breakpoint"
	"diagnose/replay/checkpoint"
	"diagnose/replay/record"
	"diagnose/replay/recorded"
)

// NoCheckpointError says why a replay cannot be continued from where it is. The replay itself continues.
type NoCheckpointError = checkpoint.ImpossibleError

// Checkpoint is the state of a replay that was stopped. Replays can be continued from it, any number of times, while that
// replay continues, or after its end. Close gives it up.
type Checkpoint struct {
	// Moment is where the thread was that the replay had stopped for. Events counts the events that all threads had done.
	Moment evidence.Moment
	Events uint64

	copied     *checkpoint.Checkpoint
	recordings *recorded.Recordings
	placed     breakpoint.Saved
	timing     record.Timing
	kind       StopKind
	// ordinals are the last events of the threads that have begun; some may have ended.
	ordinals map[uint32]uint64
	// free: the replay was free, and had made no change. carried is what its breaks knew (Carried.Save); nil: nothing.
	free    bool
	carried any
	close   sync.Once
}

// Close gives up the checkpoint. Replays that continue from it are not affected.
func (x *Checkpoint) Close() {
	x.close.Do(func() {
		x.copied.Close()
		x.recordings.Close()
	})
}

// Before reports whether an event of a thread is after the checkpoint.
func (x *Checkpoint) Before(event evidence.Moment) bool {
	return event.Ordinal > x.ordinals[event.Thread]
}

// Checkpoint keeps the state of the process. The error is a *NoCheckpointError where that is not possible: in a replay that may
// diverge from the recording, at its end, and if the process has memory or signals that a fork would not have.
func (s *Stopped) Checkpoint() (*Checkpoint, error) {
	c := s.c
	switch {
	case c.attempt.free != nil && (c.attempt.free.changed || c.result.Left != nil):
		return nil, &NoCheckpointError{Why: "the process may diverge from the recording"}
	case c.end != nil || s.thread == nil:
		return nil, &NoCheckpointError{Why: "the replay is over"}
	case !c.IsLast():
		return nil, &NoCheckpointError{Why: "the process is an ancestor of the recorded one"}
	}
	if err := s.stopOthers(); err != nil {
		return nil, err
	}
	control, err := c.ReadControl()
	if err != nil {
		return nil, err
	}
	x := &Checkpoint{Moment: s.Moment, Events: control.Consumed, timing: c.attempt.timing, kind: StopUntil, free: c.attempt.free != nil}
	if f := c.request.free; f != nil {
		if control.Free != agent.FreeMay {
			return nil, &NoCheckpointError{Why: "the process is free"}
		}
		if f.carried != nil {
			x.carried = f.carried.Save()
		}
	}
	if c.debugging != nil {
		x.kind = c.debugging.stopped
	}
	if x.ordinals, err = c.ordinals(control); err != nil {
		return nil, err
	}
	if x.placed, err = c.placer.Save(); errors.Is(err, breakpoint.ErrRepeats) {
		return nil, &NoCheckpointError{Why: err.Error()}
	} else if err != nil {
		return nil, err
	}
	if x.copied, err = checkpoint.Take(c.Process, traceOptions, x.placed.Text); err != nil {
		return nil, err
	}
	x.recordings = c.Recordings.Share()
	return x, nil
}

// ordinals returns the last events of the threads that have begun, of those that have ended, too.
func (c *controller) ordinals(control *agent.RawControl) (map[uint32]uint64, error) {
	last := map[uint32]uint64{}
	for i := uint32(1); i <= min(control.Threads, agent.RThreads-1); i++ {
		r, err := c.ReadThread(i)
		if err != nil {
			return nil, err
		}
		last[i] = r.Ordinal
	}
	return last, nil
}

// RoomFor reports whether so many checkpoints of the process leave enough of the machine's memory.
func (s *Stopped) RoomFor(checkpoints int) bool { return checkpoint.HasRoom(s.c.PID, checkpoints) }

// copyProcess makes the process of a replay that continues.
func (c *controller) copyProcess(from *Checkpoint) error {
	if from.recordings.Rec != c.Rec {
		return errors.New("replay: the checkpoint is of another recording")
	}
	if from.free != (c.request.free != nil) {
		return errors.New("replay: the checkpoint is of another kind of replay")
	}
	if err := from.copied.Continue(c.Process, traceOptions); err != nil {
		return err
	}
	c.Mapped = append(c.Mapped, from.placed.Mapped...)
	c.PinTracer()
	return c.chooseBreakpoints()
}

// continueFrom lets the process of copyProcess continue.
func (c *controller) continueFrom(from *Checkpoint) error {
	c.watch.watchProcess(c.PID, c.Control)
	if err := c.placer.Adopt(from.placed); err != nil {
		return err
	}
	for _, t := range c.SortedThreads() {
		if !t.Stopped {
			continue
		}
		if err := c.armWatches(t); err != nil {
			return err
		}
	}
	if err := c.breaks.place(); err != nil {
		return err
	}
	if f := c.request.free; f != nil && f.carried != nil {
		f.carried.Load(from.carried)
	}
	if err := c.setHooks(from); err != nil {
		return err
	}
	if d := c.debugging; d != nil {
		t := c.ThreadNumbered(from.Moment.Thread)
		if t == nil {
			return fmt.Errorf("replay: a copy of the process has no thread %d", from.Moment.Thread)
		}
		return d.stop(t, from.kind)
	}
	return c.goOn()
}

// setHooks tells the engine of the first hook after the checkpoint.
func (c *controller) setHooks(from *Checkpoint) error {
	control, err := c.ReadControl()
	if err != nil {
		return err
	}
	control.Echo, control.Tracer = 0, uint32(os.Getpid())
	if c.request.Echo != nil {
		control.Echo = 1
	}
	control.StopThread, control.StopAt = 0, ^uint64(0)
	left := c.hooks.list[:0:0]
	for _, h := range c.hooks.list {
		if h.At.Ordinal > from.ordinals[h.At.Thread] {
			left = append(left, h)
		} else if !h.debug && h.keep == 0 {
			return &MomentError{h.At, "the replay began after its event"}
		}
	}
	if c.hooks.list = left; len(left) > 0 {
		control.StopThread, control.StopAt = left[0].At.Thread, left[0].At.Ordinal
	}
	return c.WriteControl(control)
}
