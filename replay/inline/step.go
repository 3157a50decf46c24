package inline

import (
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/internal/siginfo"
	"diagnose/internal/wording"
	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// Original sets the pc of a thread at a copied instruction in an arena to the instruction's
// address in the program's text.
func (in *Inlined) Original(regs *ptrace.Registers) bool {
	x := in.ArenaAt(regs.Rip)
	if x == nil {
		return false
	}
	for _, p := range x.placed {
		if regs.Rip < p.Start || regs.Rip >= p.End {
			continue
		}
		tracee.BackTo(p.inst, p.Start, regs)
		return true
	}
	return false
}

// WindowOf returns the window that has an instruction, and the address of its copy; nil if there
// is none.
func (in *Inlined) WindowOf(pc uint64) (w *Window, at uint64) {
	for _, w := range in.windows {
		for i := range w.Moved {
			if w.Moved[i].PC == pc {
				return w, w.Copies[i]
			}
		}
	}
	return nil, 0
}

// Expose removes the window that hides a pc. Its sites get an int3.
func (in *Inlined) Expose(pc uint64) error {
	i := slices.IndexFunc(in.windows, func(w *Window) bool { return w.Hides(pc) })
	if i < 0 {
		return nil
	}
	return in.removeWindow(i)
}

// removeWindow removes a window. Its sites get an int3.
func (in *Inlined) removeWindow(i int) error {
	w := in.windows[i]
	for _, j := range w.jumps {
		if err := in.process.Memory.Restore(j.Addr); err != nil {
			return err
		}
	}
	for _, s := range w.sites {
		if err := in.trap(s); err != nil {
			return err
		}
	}
	in.windows = slices.Delete(in.windows, i, i+1)
	return in.exposed(w)
}

// Remove restores all of the program's text.
func (in *Inlined) Remove() error {
	if err := in.process.Memory.RestoreAll(); err != nil {
		return err
	}
	in.windows, in.unloaded, in.sites = nil, nil, map[uint64]*Site{}
	return nil
}

// HandleStop handles a signal of a thread in our code. done: nothing is left to do.
func (in *Inlined) HandleStop(t *tracee.Thread, s *tracee.SignalStop) (done bool, err error) {
	if s.Signal == unix.SIGTRAP && s.Code == siginfo.Kernel {
		site := in.Traps[s.Regs.Rip]
		if site == nil {
			return false, nil
		}
		return true, in.code.Trapped(t, s, site)
	}
	if s.Code <= 0 || !tracee.IsFault(s.Signal) || in.ArenaAt(s.Regs.Rip) == nil {
		return false, nil
	}
	if done, err := in.code.Faulted(t, s); done || err != nil {
		return done, err
	}
	if !in.Original(&s.Regs) {
		return false, fmt.Errorf("replay: %s at %#x, in code of the tool's", wording.Signal(int(s.Signal)), s.Regs.Rip)
	}
	if err := in.Expose(s.Regs.Rip); err != nil {
		return false, err
	}
	return false, ptrace.SetRegisters(t.TID, &s.Regs)
}

// StepOver makes a stopped thread execute a site's instruction at its own address. Of an
// instruction that repeats it executes one repetition. stop is set if another stop occurred, which
// must be handled.
func (in *Inlined) StepOver(t *tracee.Thread, site *Site, regs *ptrace.Registers) (stop *ptrace.Stop, err error) {
	err = in.inPlace(t, site, regs, func() error {
		return in.process.Traps.Lifted(t.TID, func() error {
			stop, err = in.until(t, ptrace.Step, tracee.IsStepTrap)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return stop, in.passed(t, stop, regs)
}

// passed reads the registers of a thread that has stopped. If another stop occurred at an
// instruction that a window hides, the window is removed: the thread continues there, perhaps
// after a handler.
func (in *Inlined) passed(t *tracee.Thread, stop *ptrace.Stop, regs *ptrace.Registers) (err error) {
	if stop != nil && stop.Kind == ptrace.Ended {
		return nil
	}
	if *regs, err = ptrace.GetRegisters(t.TID); err != nil || stop == nil {
		return err
	}
	return in.Expose(regs.Rip)
}

// RunOver is stepOver for an instruction that repeats, with all repetitions.
func (in *Inlined) RunOver(t *tracee.Thread, site *Site, regs *ptrace.Registers) (stop *ptrace.Stop, err error) {
	end := int64(site.Inst.PC) + int64(site.Inst.Len)
	err = in.inPlace(t, site, regs, func() error {
		own := make([]byte, 1)
		if _, err := in.process.Memory.ReadPlaced(own, end); err != nil {
			return err
		}
		if _, err := in.process.Memory.WriteAt([]byte{tracee.Int3}, end); err != nil {
			return err
		}
		err := in.process.Traps.Lifted(t.TID, func() error {
			stop, err = in.until(t, ptrace.Cont, func(code int32) bool { return code == siginfo.Kernel })
			return err
		})
		if err != nil {
			return err
		}
		_, err = in.process.Memory.WriteAt(own, end)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := in.passed(t, stop, regs); err != nil {
		return nil, err
	}
	if stop == nil {
		regs.Rip--
	}
	return stop, nil
}

// inPlace moves a thread to a site's instruction and calls do while the program's text is restored
// there. regs are the thread's registers.
func (in *Inlined) inPlace(t *tracee.Thread, site *Site, regs *ptrace.Registers, do func() error) error {
	jumps := []tracee.Words{{Addr: site.Inst.PC, Data: []byte{tracee.Int3}}}
	if site.window != nil {
		jumps = site.window.jumps
	}
	for _, j := range jumps {
		own := make([]byte, len(j.Data))
		if _, err := in.process.Memory.ReadAt(own, int64(j.Addr)); err != nil {
			return err
		}
		if _, err := in.process.Memory.WriteAt(own, int64(j.Addr)); err != nil {
			return err
		}
	}
	regs.Rip, regs.Orig_rax = site.Inst.PC, ^uint64(0)
	// A debug register at the instruction has stopped the thread before the site did. It would
	// stop it here again and again.
	regs.Eflags |= ptrace.FlagResume
	if err := ptrace.SetRegisters(t.TID, regs); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	for _, j := range jumps {
		if _, err := in.process.Memory.WriteAt(j.Data, int64(j.Addr)); err != nil {
			return err
		}
	}
	return nil
}

// until resumes a thread until a trap with a code that ends it. Signals that were sent to it are not
// delivered to the program (controller.sent).
func (in *Inlined) until(t *tracee.Thread, on func(int, syscall.Signal) error, ends func(code int32) bool) (*ptrace.Stop, error) {
	for {
		if err := on(t.TID, 0); err != nil {
			return nil, err
		}
		stop, err := ptrace.WaitFor(t.TID)
		if err != nil {
			return nil, err
		}
		if stop.Kind != ptrace.SignalStop {
			return &stop, nil
		}
		info, err := ptrace.GetSiginfo(t.TID)
		if err != nil {
			return nil, err
		}
		switch code := info.Code(); {
		case stop.Signal == unix.SIGTRAP && ends(code):
			return nil, nil
		case code > 0 && tracee.IsFault(stop.Signal):
			return &stop, nil
		}
	}
}

// ContinueInCopy moves a thread from an instruction that a window hides to the instruction's copy
// in our memory.
func (in *Inlined) ContinueInCopy(t *tracee.Thread, regs *ptrace.Registers) error {
	for _, w := range in.windows {
		if !w.Hides(regs.Rip) {
			continue
		}
		for i := range w.Moved {
			if w.Moved[i].PC == regs.Rip {
				regs.Rip = w.Copies[i]
				return ptrace.SetRegisters(t.TID, regs)
			}
		}
		return in.Expose(regs.Rip)
	}
	return nil
}

// ReplacedByEngine reports whether the engine replaces this code.
func (in *Inlined) ReplacedByEngine(pc, size uint64) bool {
	w := patch.Window{Start: pc, End: pc + size}
	return slices.ContainsFunc(in.patched(), w.Overlaps)
}

// OverlapsWindow reports whether the window covers text that is replaced already.
func (in *Inlined) OverlapsWindow(w *patch.Window) bool {
	for _, x := range in.windows {
		if w.Overlaps(&x.Window) {
			return true
		}
	}
	for pc, s := range in.sites {
		if s.window == nil && pc >= w.Start && pc < w.End {
			return true
		}
	}
	return false
}
