package replay

import (
	"fmt"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// pointText describes a preemption's event.
func pointText(e *eventlog.Event) string {
	if len(e.Args) > 1 && e.Args[0] == agent.PointPC {
		return fmt.Sprintf("a preemption at %v, arrival %d", evidence.Addr(e.Object), e.Args[1])
	}
	return "a preemption"
}

// Stuck says why the replay makes no progress; nil if it ended otherwise.
func (s *Stopped) Stuck() *StuckError {
	if s.c.end == nil {
		return nil
	}
	e, _ := s.c.end.failure.(*StuckError)
	return e
}

// ThreadPC returns the pc of a thread in the program.
func (s *Stopped) ThreadPC(thread uint32) (evidence.Addr, error) {
	t := s.c.ThreadNumbered(thread)
	if t == nil {
		return 0, fmt.Errorf("replay: there is no thread %d", thread)
	}
	regs, err := s.c.ProgramRegisters(t)
	return evidence.Addr(regs.Rip), err
}
