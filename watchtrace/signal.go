package watchtrace

import (
	"context"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// signalRegisters is the order of those eventlog.HandledSignal.Registers that image has.
var signalRegisters = []image.Register{image.R8, image.R9, image.R10, image.R11, image.R12, image.R13, image.R14, image.R15, image.RDI,
	image.RSI, image.RBP, image.RBX, image.RDX, image.RAX, image.RCX, image.RSP, image.RIP}

// AtSignal calls use with a replay's process at a signal that a handler took: before the
// handler runs, with that signal as the thread's. It supports faults, and signals that a
// call of the thread sends, such as abort(3). The error is a *NoSignalError if the replay
// does not reach the signal.
func AtSignal(ctx context.Context, rec *record.Recording, at *eventlog.HandledSignal, opts image.Options, use func(*image.Process) error) error {
	signal, ok := at.Signal()
	if !ok || at.Place == eventlog.PlaceAsync || at.Ordinal < 2 || at.Place == eventlog.PlaceEvent && at.Ordinal < 3 {
		return &NoSignalError{at}
	}
	used := false
	look := func(s *replay.Stopped) error {
		if at.Place == eventlog.PlaceFault {
			if regs, err := s.Registers(); err != nil || !isAt(&regs, at) {
				return err
			}
		}
		p, err := s.Process()
		if err != nil {
			return err
		}
		t := p.FailingThread()
		if t == nil {
			return &NoSignalError{at}
		}
		used = true
		t.Signal = &signal
		if err := use(p); err != nil {
			return err
		}
		return replay.ErrEnough
	}
	// The thread cannot be stopped at a signal that its own call sent, so it is stopped
	// before that call, right after the previous event.
	hook := replay.Hook{At: evidence.Moment{Thread: at.Thread, Ordinal: at.Ordinal - 2}, Do: look}
	if at.Place == eventlog.PlaceFault {
		hook.At, hook.Every = evidence.Moment{Thread: at.Thread, Ordinal: at.Ordinal - 1, PC: at.PC, Count: 1}, true
	}
	_, err := replay.Run(ctx, rec, replay.PlainRequest{Common: replay.Common{Image: opts, Hooks: []replay.Hook{hook}}})
	if err == nil && !used {
		err = &NoSignalError{at}
	}
	return err
}

// isAt reports whether a thread has the registers that the signal interrupted.
func isAt(regs *image.Registers, at *eventlog.HandledSignal) bool {
	for i, r := range signalRegisters {
		if have, known := regs.Get(r); known && have != at.Registers[i] {
			return false
		}
	}
	return true
}

// NoSignalError says that a replay did not reach a signal of the recording.
type NoSignalError struct{ At *eventlog.HandledSignal }

func (e *NoSignalError) Error() string {
	return fmt.Sprintf("watchtrace: the replay did not reach the signal at %v after event %d of thread %d", e.At.PC, e.At.Ordinal-1, e.At.Thread)
}
