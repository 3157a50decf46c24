package image

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/internal/siginfo"
)

// Traced is a process that the caller traces and holds stopped.
type Traced struct {
	PID     int
	Threads []TracedThread
	// Failing is an index into Threads; -1 is none.
	Failing int
}

// TracedThread is one of its threads, with the registers that the process shows
// for it.
type TracedThread struct {
	TID int
	// General is a struct user_regs_struct of sys/user.h; Floating begins as
	// FXSAVE's area does and may be nil.
	General, Floating []byte
	// Siginfo is the siginfo_t of the signal that the thread stopped for; nil: none.
	Siginfo []byte
}

// OpenTraced reads a process that the caller has stopped and keeps stopped
// until Close.
func OpenTraced(traced Traced, opts Options) (p *Process, err error) {
	err = guarded(func() (err error) {
		p, err = openTraced(traced, opts)
		return err
	})
	return p, err
}

func openTraced(traced Traced, opts Options) (*Process, error) {
	if len(traced.Threads) == 0 {
		return nil, fmt.Errorf("process %d: no thread of it is stopped", traced.PID)
	}
	pid := traced.PID
	p := newProcess(opts)
	p.Failing, p.stackLimit = traced.Failing, stackLimitOf(pid)
	p.Program = evidence.Program{Source: evidence.SourceLive, PID: pid, Args: readCommandLine(pid), Threads: len(traced.Threads)}
	for i, t := range traced.Threads {
		regs, err := parseUserRegs(t.General)
		if err != nil {
			return nil, fmt.Errorf("thread %d: %w", t.TID, err)
		}
		regs.Vector = parseFXSave(t.Floating)
		thread := Thread{Ref: evidence.ThreadRef{Number: i + 1, TID: t.TID, Name: threadName(pid, t.TID)}, Registers: regs}
		if s, ok := siginfo.Parse(t.Siginfo); ok {
			thread.Signal = &s
		}
		p.Threads = append(p.Threads, thread)
	}
	reader := traced.Threads[0].TID
	file, err := p.openMemory(reader)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	p.close = file.Close
	return p, nil
}
