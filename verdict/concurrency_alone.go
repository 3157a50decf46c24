package verdict

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/record"
	"diagnose/replay"
)

// alone reports whether all runs had one thread and no signal came to it from outside of
// its code. A fault's handler could not have come at another time. A signal that came in a
// passing run may be what the failing one lacks.
func (w *work) alone() (bool, error) {
	for _, rec := range append([]*record.Recording{w.rec}, w.Passing...) {
		if !aloneIn(rec) {
			return false, w.ctx.Err()
		}
	}
	return true, w.ctx.Err()
}

func aloneIn(rec *record.Recording) bool {
	if !slices.Equal(rec.Log.Threads(), []uint32{1}) {
		return false
	}
	for e, err := range rec.Log.Events(1) {
		if err != nil {
			break // what is missing may have had more
		}
		if e.Kind == record.KindCreate || sent(e) {
			return false
		}
	}
	return rec.Log.Cut() == nil
}

// sent reports whether an event is a signal that no instruction of the thread raised.
func sent(e *record.Event) bool {
	return e.Kind == record.KindSignal && len(e.Args) > 0 && record.SignalPlace(e.Args[0]) != record.PlaceFault
}

// noInterleaving says why no order of accesses is looked for. A handler that did not run is
// one that might have.
func (w *work) noInterleaving() evidence.Fact {
	f := evidence.Fact{Name: "interleavings",
		Text: "the program had one thread, and no signal interrupted it: no order of accesses could have been another"}
	if names := w.awaited(); len(names) > 0 {
		f.Text = fmt.Sprintf("the program had one thread, and no signal interrupted it; whether the handler of %s should have run before "+
			"is not known without a passing run in which it did", strings.Join(names, ", "))
	}
	return f
}

// awaited are the signals that the failing run set a handler for, but those of faults.
func (w *work) awaited() []string {
	var names []string
	for e, err := range w.rec.Log.Events(1) {
		if err != nil {
			break // what was set until then is enough
		}
		if e.Kind != record.KindSyscall || e.Object != unix.SYS_RT_SIGACTION || len(e.Args) < 2 || e.Args[1] == 0 || e.Result != 0 {
			continue
		}
		number := e.Args[0]
		if number == 0 || number > 64 || replay.IsFault(unix.Signal(number)) {
			continue
		}
		if name := signalName(uint8(number)); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
