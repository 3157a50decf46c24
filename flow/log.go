package flow

import (
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
)

// readLog notes the memory that the events between the steps wrote. It reads no further than the steps go.
func (t *Trace) readLog(log *eventlog.Log, windows map[uint32]replay.StepWindow) {
	for thread, last := range t.last {
		for e, err := range log.Events(thread) {
			if err != nil || e.Ordinal > t.steps.at(int(last)).ordinal {
				break // of a damaged log the events up to there are known
			}
			if e.Ordinal >= windows[thread].From {
				t.noteEvent(event{thread, e.Ordinal}, e)
			}
		}
	}
}

func (t *Trace) noteEvent(at event, e *eventlog.Event) {
	if list := e.MemoryChanges(); list != nil {
		t.mappings[at] = list
	}
	for _, p := range e.Payloads {
		if p.Kind == eventlog.PayloadOut && p.Addr != 0 && len(p.Data) > 0 {
			t.outputs[at] = append(t.outputs[at], output{p.Addr, uint64(len(p.Data)), callName(e)})
		}
	}
}

// callName is the name of the system call of an event, or of its kind.
func callName(e *eventlog.Event) string {
	if e.Kind == eventlog.KindSyscall {
		return eventlog.SyscallName(e.Object)
	}
	return e.Kind.String()
}
