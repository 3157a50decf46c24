package watchpoint

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/inline"
	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// watchByProbes selects the back end that sees the accesses of known instructions.
func (tr *Tracing) watchByProbes() error {
	p, err := newProbes(tr)
	if err != nil {
		return err
	}
	tr.probes = p
	tr.Counts.Backend = BackendProbe
	tr.Counts.Unseen = make([]uint64, len(tr.asked.Watches))
	tr.collecting.Go(tr.collect)
	return nil
}

// InstallProbes is called at a thread's request in the engine that reports loaded objects, or at
// its first request.
func (tr *Tracing) InstallProbes(t *tracee.Thread, s *tracee.SignalStop) error {
	if tr == nil || tr.probes == nil {
		return nil
	}
	tr.replay.Pause() // it takes long
	err := tr.probes.install(t)
	tr.replay.Unpause()
	if err != nil {
		return err
	}
	regs, err := ptrace.GetRegisters(t.TID)
	s.Regs.Gs_base = regs.Gs_base
	return err
}

// Original changes the registers of a thread in the code of the tracing to those of the program.
func (tr *Tracing) Original(regs *ptrace.Registers) {
	if tr != nil && tr.probes != nil {
		tr.probes.original(regs)
	}
}

// original changes the registers of a thread in the code of probes to those of the program.
func (p *probes) original(regs *ptrace.Registers) {
	own := regs.Gs_base
	regs.Gs_base = 0
	if p.in.Original(regs) || own < p.base+blockOwn || p.in.ArenaAt(regs.Rip) == nil {
		return
	}
	// It is in our code. If the instruction is known, the program's pc is after it.
	at := own - p.base
	if p.in.Traps[regs.Rip] == p.each && at+ownBytes <= blockRing {
		memory := p.block[at : at+ownBytes]
		word := func(at int) uint64 { return binary.LittleEndian.Uint64(memory[at:]) }
		regs.Rax, regs.Rcx, regs.Rdx = word(ownAX), word(ownCX), word(ownDX)
		regs.Eflags = regs.Eflags&^patch.ResultFlags | patch.FlagsOf(word(ownFlags)&0xffff)
		x := p.all[uint32(word(ownSite))]
		regs.Rip = x.inst.PC + uint64(x.inst.Len)
	}
}

// Trapped implements inline.Code.
func (p *probes) Trapped(t *tracee.Thread, s *tracee.SignalStop, site *inline.Site) error {
	behind := t
	if site != p.each {
		behind = nil // the thread is not right after the last entry
	}
	if err := p.drain(behind); err != nil || p.tr.replay.Over() {
		return err
	}
	if site == p.full || site == p.each {
		return p.tr.replay.Resume(t)
	}
	if p.tr.Counts.Stops++; p.tr.asked.MostStops > 0 && p.tr.Counts.Stops > p.tr.asked.MostStops {
		return &StopsError{p.tr.asked.MostStops}
	}
	stop, err := p.step(t, &s.Regs, site)
	if err != nil || p.tr.replay.Over() {
		return err
	}
	if stop != nil {
		return p.tr.replay.HandleStop(*stop)
	}
	if err := p.in.ContinueInCopy(t, &s.Regs); err != nil {
		return err
	}
	return p.tr.replay.Resume(t)
}

// Faulted implements inline.Code.
func (p *probes) Faulted(t *tracee.Thread, s *tracee.SignalStop) (bool, error) {
	if s.Signal != unix.SIGSEGV && s.Signal != unix.SIGBUS {
		return false, nil
	}
	if place, found := p.loads[s.Regs.Rip]; found {
		// The program's own access will fault, too.
		s.Regs.Rip = place.base + uint64(place.labels["miss"])
	} else if p.lockLoads[s.Regs.Rip] {
		const length = 2
		s.Regs.Rdx, s.Regs.Rip = 0, s.Regs.Rip+length // the lock's memory is not mapped (yet)
	} else {
		return false, nil
	}
	if err := ptrace.SetRegisters(t.TID, &s.Regs); err != nil {
		return false, err
	}
	return true, p.tr.replay.Continue(t)
}

// touch is an access that an instruction is about to make.
type touch struct {
	kind   evidence.AccessCode
	before uint64
}

// step makes a thread execute a site's instruction, with all its repetitions, and makes hits of
// its accesses. stop is any other stop that occurred.
func (p *probes) step(t *tracee.Thread, regs *ptrace.Registers, site *inline.Site) (stop *ptrace.Stop, err error) {
	x := p.all[site.Number]
	regs.Rip = x.inst.PC
	for {
		touches, err := p.about(x, regs)
		if err != nil {
			return nil, err
		}
		if len(touches) == 0 && len(x.operands) > 0 && x.operands[0].Repeated && regs.Rcx > 1 {
			done, stop, err := p.skip(t, x, regs, site)
			if done || stop != nil || err != nil {
				return stop, err
			}
			continue
		}
		if stop, err = p.in.StepOver(t, site, regs); stop != nil || err != nil {
			return stop, err
		}
		if len(touches) > 0 {
			if err := p.stepped(t, x, regs, touches); err != nil || p.tr.replay.Over() {
				return nil, err
			}
		}
		if regs.Rip != x.inst.PC || !x.inst.Repeats() {
			return nil, nil
		}
	}
}

// about returns the accesses to watched words that an instruction is about to make.
func (p *probes) about(x *probeSite, regs *ptrace.Registers) (map[int]touch, error) {
	var touches map[int]touch
	for _, o := range x.operands {
		if o.Repeated && regs.Rcx == 0 {
			continue
		}
		addr, known := p.address(o, regs)
		if !known || !p.touches(addr, uint64(o.Size)) {
			continue
		}
		if touches == nil {
			touches = map[int]touch{}
		}
		err := p.touched(addr, uint64(o.Size), func(watch int, _ *tracee.Watch) error {
			before, err := p.tr.word(watch)
			touches[watch] = touch{touches[watch].kind | CodeOf(o.Access), before}
			if err != nil {
				delete(touches, watch) // the access will fault
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return touches, nil
}

// address computes the address of an operand that has not been accessed yet. %gs points to the
// tool's own block while there are probes; the program's base is zero.
func (p *probes) address(o *x86.Operand, regs *ptrace.Registers) (uint64, bool) {
	own := *regs
	own.Gs_base = 0
	return tracee.OperandAddress(o, &own)
}

// stepped makes hits of the accesses.
func (p *probes) stepped(t *tracee.Thread, x *probeSite, regs *ptrace.Registers, touches map[int]touch) error {
	tr := p.tr
	s, err := tr.see(t, regs)
	if err != nil {
		return err
	}
	for watch := range tr.watches {
		access, found := touches[watch]
		if !found {
			continue
		}
		now, err := tr.word(watch)
		if err != nil {
			return err
		}
		h := Hit{Watch: watch, Thread: s.index, Ordinal: s.ordinal, Position: s.position, Turn: s.turn, Held: s.held,
			Kind: access.kind, PC: evidence.Addr(x.inst.PC), SP: evidence.Addr(regs.Rsp)}
		tr.code.onBehalf(s, &h)
		if h.By == evidence.ByCall {
			continue // the log has it
		}
		if err := p.hit(h, access.before, now, t); err != nil {
			return err
		}
	}
	return nil
}

// skip lets a string instruction repeat until its next repetition touches a watched word. done: it
// ended without touching one.
func (p *probes) skip(t *tracee.Thread, x *probeSite, regs *ptrace.Registers, site *inline.Site) (done bool, stop *ptrace.Stop, err error) {
	next := p.next(x, regs)
	left := regs.Rcx - next
	regs.Rcx = next
	stop, err = p.in.RunOver(t, site, regs)
	if err != nil {
		return false, nil, err
	}
	ended := stop != nil || regs.Rcx != 0
	if length := len(x.inst.Bytes); !ended && compares(&x.inst) {
		untilEqual := bytes.IndexByte(x.inst.Bytes[:length-1], 0xf2) >= 0 // repne
		ended = untilEqual == (regs.Eflags&zeroFlag != 0)
	}
	regs.Rcx += left
	if left > 0 && !ended {
		regs.Rip = x.inst.PC
	}
	return ended || left == 0, stop, ptrace.SetRegisters(t.TID, regs)
}

// compares reports whether the instruction is scas or cmps, which end when they find what they
// search for.
func compares(inst *x86.Inst) bool {
	switch inst.Bytes[len(inst.Bytes)-1] {
	case 0xa6, 0xa7, 0xae, 0xaf:
		return true
	}
	return false
}

// next returns how often a string instruction repeats before it touches a watched word. Its first
// repetition touches none.
func (p *probes) next(x *probeSite, regs *ptrace.Registers) uint64 {
	least := int64(regs.Rcx)
	for _, o := range x.operands {
		addr, known := p.address(o, regs)
		if !known || !o.Repeated {
			continue
		}
		size := int64(o.Size)
		for _, w := range p.spans {
			// The first repetition that reaches the range, if it is not past it.
			ahead, first := int64(w.Start-addr), int64(0)
			if regs.Eflags&directionFlag != 0 {
				ahead = int64(addr - w.End)
				first = max(floor(ahead, size)+1, 1)
				if addr-uint64(first*size)+uint64(size) <= w.Start {
					continue
				}
			} else {
				first = max(floor(ahead, size), 1)
				if addr+uint64(first*size) >= w.End {
					continue
				}
			}
			least = min(least, first)
		}
	}
	return uint64(least)
}

func floor(a, b int64) int64 {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
}
