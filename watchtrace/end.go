package watchtrace

import (
	"context"
	"errors"
	"fmt"
	"os"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// AtEnd calls use with the process at a recording's end: its core, or a replay
// if it has none.
func AtEnd(ctx context.Context, rec *record.Recording, opts image.Options, use func(*image.Process) error) error {
	path, err := rec.Core()
	if err == nil {
		p, err := image.OpenCore(path, opts)
		if err != nil {
			return &replay.InputError{Err: fmt.Errorf("watchtrace: the recording's core: %w", err)}
		}
		defer p.Close()
		return use(p)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_, err = replay.Run(ctx, rec, replay.PlainRequest{Common: replay.Common{Image: opts, AtEnd: func(s *replay.Stopped) error {
		p, err := s.Process()
		if err != nil {
			return err
		}
		return use(p)
	}}})
	return err
}

// CallKey is an event of a thread.
type CallKey struct {
	Thread  uint32
	Ordinal uint64
}

// Calls names the system calls that made accesses of a log.
func Calls(rec *record.Recording, log *evidence.AccessLog) (map[CallKey]string, error) {
	wanted := map[CallKey]string{}
	threads := map[uint32]bool{}
	for i := range log.Accesses {
		if a := &log.Accesses[i]; a.By == evidence.ByCall {
			wanted[CallKey{a.Thread, a.Ordinal}] = ""
			threads[a.Thread] = true
		}
	}
	for thread := range threads {
		for e, err := range rec.Log.Events(thread) {
			var cut *eventlog.CutError
			if errors.As(err, &cut) {
				break
			}
			if err != nil {
				return nil, err
			}
			key := CallKey{thread, e.Ordinal}
			if _, found := wanted[key]; !found {
				continue
			}
			wanted[key] = e.Kind.String()
			if e.Kind == eventlog.KindSyscall {
				wanted[key] = eventlog.SyscallName(e.Object)
			}
		}
	}
	return wanted, nil
}
