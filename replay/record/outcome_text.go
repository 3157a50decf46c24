package record

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

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

// MemoryWords says that the kernel may have killed the process for lack of memory; empty if
// nothing indicates that.
func (o *Outcome) MemoryWords() string {
	switch o.MemoryKills {
	case 0:
		return ""
	case 1:
		return "the kernel killed a process for lack of memory while it ran"
	}
	return fmt.Sprintf("the kernel killed %d processes for lack of memory while it ran", o.MemoryKills)
}

// ending describes how the process ended.
func (o *Outcome) Ending() string {
	switch o.Kind {
	case OutcomeSignal:
		return "the process died of " + wording.Signal(o.Signal)
	case OutcomeExec:
		return "the process executed another program"
	}
	return fmt.Sprintf("the process exited with status %d", o.Status)
}

// Crashed reports whether the process died of a signal that leaves a core, had no thread that
// could continue, or has evidence of damage to its heap.
func (o *Outcome) Crashed() bool {
	return o.Evidence != "" || o.Stuck != "" || o.Kind == OutcomeSignal && DumpsCore(syscall.Signal(o.Signal))
}

func (o *Outcome) Failed() bool {
	return o.Crashed() || o.Kind == OutcomeSignal || o.Kind == OutcomeExit
}

// final is how the process ended, even if its recording ended earlier.
func (o *Outcome) final() *Outcome {
	if o.Kind == OutcomeCut && o.Cut != nil {
		return o.Cut
	}
	return o
}

// word is the name of a run in which a process ended this way; empty if it passed.
func (o *Outcome) RunName() string {
	switch {
	case o.Kind == OutcomeSignal && o.Stuck != "":
		return o.Stuck.name()
	case o.Kind == OutcomeSignal:
		return strings.ReplaceAll(wording.Signal(o.Signal), " ", "-") // part of a directory's name
	case o.Kind == OutcomeExit:
		return fmt.Sprintf("exit-%d", o.Status)
	case o.Evidence != "":
		return "heap"
	case o.Declared != nil:
		return "failed-" + string(o.Declared.Rule)
	}
	return ""
}

// Deed describes how the process ended: "died of SIGSEGV".
func (o *Outcome) Deed() string {
	switch {
	case o.Kind == OutcomeSignal && o.Stuck != "":
		return o.Stuck.Words()
	case o.Kind == OutcomeSignal:
		return "died of " + wording.Signal(o.Signal)
	case o.Declared != nil:
		return o.Declared.Words()
	case o.Kind == OutcomeExit, o.Kind == OutcomePassed && o.Evidence == "":
		return fmt.Sprintf("exited with status %d", o.Status)
	case o.Kind == OutcomePassed:
		return "passed, but " + o.Evidence
	}
	return "ended in a way that is not known"
}

// dumps reports whether the default action is Core in signal(7).
func DumpsCore(s syscall.Signal) bool {
	return slices.Contains([]syscall.Signal{unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE,
		unix.SIGSEGV, unix.SIGSYS, unix.SIGXCPU, unix.SIGXFSZ}, s)
}
