package record

import (
	"fmt"
	"strings"

	"diagnose/internal/wording"
)

// String describes in a line how the run ended: "SIGSEGV at address 0x8 in thread 2".
func (o *Outcome) String() string {
	var b strings.Builder
	switch o.Kind {
	case OutcomeSignal:
		b.WriteString(wording.Signal(o.Signal))
	case OutcomeExit:
		fmt.Fprintf(&b, "exit status %d", o.Status)
	case OutcomePassed:
		b.WriteString("passed")
	case OutcomeRunning:
		b.WriteString("unknown: it is still being recorded, or the recorder was killed")
	case OutcomeExec:
		b.WriteString("executed another program")
	case OutcomeCut:
		b.WriteString("unknown, the recording ended before the program")
	}
	if o.FaultAddr != nil {
		fmt.Fprintf(&b, " at address %v", *o.FaultAddr)
	}
	if o.Thread != 0 {
		fmt.Fprintf(&b, " in thread %d", o.Thread)
	}
	if o.PC != nil && o.Kind == OutcomeSignal {
		fmt.Fprintf(&b, ", pc %v", *o.PC)
	}
	if o.Declared != nil {
		b.WriteString("; " + o.Declared.Words())
	}
	for _, text := range []string{o.MemoryWords(), o.Evidence, o.Text} {
		if text != "" {
			b.WriteString("; " + text)
		}
	}
	return b.String()
}
