package driver

import (
	"errors"
	"sync"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// readers returns the kernel's ids of the threads that the log shows to be among the so many readers
// of a lock. Releases are no events. But a thread is a reader if there are more readers than times
// that the other threads took the lock, since a writer had it. nil: none is known.
func (w waitReader) readers(lock evidence.Addr, count uint32) []uint64 {
	if !w.ofRecording(w.process) {
		return nil
	}
	taken, err := takenForReading(w.failing[0].Log, lock)
	if err != nil {
		return nil // the lock's own word is all that is known
	}
	all := uint64(0)
	for _, n := range taken {
		all += n
	}
	if all < uint64(count) {
		return nil // some readers are not in the log
	}
	var tids []uint64
	for i := range w.process.Threads {
		ref := w.process.Threads[i].Ref
		if n := taken[uint32(ref.Recorded)]; n > 0 && all-n < uint64(count) {
			tids = append(tids, uint64(ref.TID))
		}
	}
	return tids
}

// ended returns what finds the recording's thread that had a kernel's id, which none of the process's threads has. The id may
// have been another thread's before: the last one counts. The log is read when that is first asked.
func (w waitReader) ended() func(tid uint64) (evidence.ThreadRef, bool) {
	threads := sync.OnceValue(func() map[uint64]evidence.ThreadRef {
		list := map[uint64]evidence.ThreadRef{}
		if !w.ofRecording(w.process) {
			return list
		}
		summary, err := w.failing[0].Log.Summarize()
		if err != nil {
			return list // the lock's own word is all that is known
		}
		for _, t := range summary.Threads {
			list[uint64(t.TID)] = evidence.ThreadRef{Number: int(t.Index), TID: int(t.TID), Recorded: int(t.Index)}
		}
		return list
	})
	return func(tid uint64) (evidence.ThreadRef, bool) {
		ref, known := threads()[tid]
		return ref, known
	}
}

// takenForReading counts, by thread of the recording, how often a lock was taken for reading since a
// thread last took it for writing.
func takenForReading(log *eventlog.Log, lock evidence.Addr) (map[uint32]uint64, error) {
	taken := map[uint32]uint64{}
	for e, err := range log.Ordered() {
		var cut *eventlog.CutError
		if errors.As(err, &cut) {
			break
		}
		if err != nil {
			return nil, err
		}
		if e.Kind != eventlog.KindRWLock || evidence.Addr(e.Object) != lock || e.Result != 0 || e.Flags&eventlog.FlagInterrupted != 0 || len(e.Args) == 0 {
			continue
		}
		if eventlog.Sync(e.Args[0]).Reads() {
			taken[e.Thread]++
		} else {
			clear(taken)
		}
	}
	return taken, nil
}
