package verdict

import (
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/wording"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// alone reports whether all runs had one thread and no signal came to it from outside of
// its code. A fault's handler could not have come at another time. A signal that came in a
// passing run may be what the failing one lacks.
func (w *work) alone() (bool, error) {
	if w.Case.Program.Threads > 1 {
		return false, w.progress.ctx.Err() // the core knows of threads that the log does not
	}
	for _, rec := range append([]*record.Recording{w.rec}, w.Passing...) {
		if !aloneIn(rec) {
			return false, w.progress.ctx.Err()
		}
	}
	return true, w.progress.ctx.Err()
}

func aloneIn(rec *record.Recording) bool {
	if !slices.Equal(rec.Log.Threads(), []uint32{1}) {
		return false
	}
	for e, err := range rec.Log.Events(1) {
		if err != nil {
			break // what is missing may have had more
		}
		if e.Kind == eventlog.KindCreate || sent(e) {
			return false
		}
	}
	return rec.Log.Cut() == nil
}

// sent reports whether an event is a signal that no instruction of the thread raised.
func sent(e *eventlog.Event) bool {
	return e.Kind == eventlog.KindSignal && len(e.Args) > 0 && eventlog.SignalPlace(e.Args[0]) != eventlog.PlaceFault
}

// Names of what was looked at and is no cause.
const (
	// factInterleavings: there was nothing that the accesses could be ordered with.
	factInterleavings = "interleavings"
	// factHandlers and factProcesses: there was, and the recordings do not tell.
	factHandlers  = "signal handlers"
	factProcesses = "other processes"
)

// noInterleaving says why no order of accesses is looked for. A handler that did not run is
// one that might have, and memory may be shared with other processes.
func (w *work) noInterleaving() evidence.Fact {
	const alone = "the program had one thread, and no signal interrupted it"
	if names := w.awaited(); len(names) > 0 {
		return evidence.Fact{Name: factHandlers, Text: fmt.Sprintf(alone+"; whether the handler of %s should have run before "+
			"is not known without a passing run in which it did", strings.Join(names, ", "))}
	}
	if slices.ContainsFunc(append([]*record.Recording{w.rec}, w.Passing...), sharesMemory) {
		return evidence.Fact{Name: factProcesses, Text: alone + "; the order in which other processes access the memory that it shares with them is not recorded"}
	}
	return evidence.Fact{Name: factInterleavings, Text: alone + ": no order of accesses could have been another"}
}

// sharesMemory reports whether a run has mapped memory that other processes may write to, as
// far as its log tells; where the log is damaged it may have.
func sharesMemory(rec *record.Recording) bool {
	for e, err := range rec.Log.Events(1) {
		if err != nil {
			return true
		}
		if e.Kind != eventlog.KindSyscall {
			continue
		}
		const flags = 3 // of the arguments of mmap(2)
		switch e.Object {
		case unix.SYS_SHMAT:
			return true
		case unix.SYS_MMAP:
			if len(e.Args) <= flags || e.Args[flags]&unix.MAP_SHARED != 0 {
				return true
			}
		}
	}
	return false
}

// awaited are the signals that the failing run had a handler for at any time, but those of
// faults. A signal that it ignored, or left to the kernel, has none.
func (w *work) awaited() []string {
	process := w.Ending
	if process == nil {
		process = w.Process
	}
	return awaitedOf(w.rec.Log.Events(1), func(number uint64) (uint64, bool) { return handlerAtEnd(process, number) })
}

// awaitedOf reads the calls of rt_sigaction. A call's own action is not in the log: the next call
// for that signal returns it as the old one, and the handler after the last call is what atEnd
// says. A handler that neither tells counts as one.
func awaitedOf(events iter.Seq2[*eventlog.Event, error], atEnd func(number uint64) (uint64, bool)) (names []string) {
	set := map[uint64]bool{} // signals with a call whose action is not known yet
	add := func(number, handler uint64, known bool) {
		const ignore = 1 // SIG_IGN, after SIG_DFL (include/uapi/asm-generic/signal-defs.h)
		if name := wording.Signal(int(number)); (!known || handler > ignore) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for e, err := range events {
		if err != nil {
			break // what was set until then is enough
		}
		if e.Kind != eventlog.KindSyscall || e.Object != unix.SYS_RT_SIGACTION || len(e.Args) < 3 || e.Result != 0 {
			continue
		}
		number := e.Args[0]
		if number == 0 || number > 64 || replay.IsFault(unix.Signal(number)) {
			continue
		}
		if handler, known := oldHandler(e); set[number] && (known || e.Args[1] != 0) {
			add(number, handler, known)
			delete(set, number)
		}
		if e.Args[1] != 0 {
			set[number] = true
		}
	}
	for _, number := range slices.Sorted(maps.Keys(set)) {
		handler, known := atEnd(number)
		add(number, handler, known)
	}
	return names
}

// oldHandler is the handler that a call of rt_sigaction replaced or asked for: the first word of
// struct sigaction (Linux, include/linux/signal_types.h).
func oldHandler(e *eventlog.Event) (uint64, bool) {
	for i := range e.Payloads {
		if p := &e.Payloads[i]; p.Kind == eventlog.PayloadOut && uint64(p.Addr) == e.Args[2] && len(p.Data) >= 8 {
			return binary.LittleEndian.Uint64(p.Data), true
		}
	}
	return 0, false
}

// handlerAtEnd is the handler of a signal as the recording library keeps it (dg_actions,
// agent/src/engine/signal_action.c).
func handlerAtEnd(p *image.Process, number uint64) (uint64, bool) {
	const signals, size = 64, 32
	actions, found := p.SymbolNamed("dg_actions")
	if !found || actions.Size != (signals+1)*size {
		return 0, false
	}
	handler, err := image.Uint64(p, actions.Addr+evidence.Addr(number*size))
	return handler, err == nil
}
