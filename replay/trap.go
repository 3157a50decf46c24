package replay

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
)

// trapped answers a request of the engine.
func (c *controller) trapped(t *thread, s *signalStop) error {
	what := s.regs.Rax
	switch what {
	case agent.TrapHello, agent.TrapForked:
		answer, err := c.hello(s, what == agent.TrapForked)
		if err == nil {
			err = c.installProbes(t, s)
		}
		if err == nil {
			err = c.placeBreaks()
		}
		if err != nil {
			return err
		}
		return c.answer(t, s, answer)
	}
	if c.control == 0 {
		return fmt.Errorf("replay: the engine asked %d before it had started", what)
	}
	switch what {
	case agent.TrapObjects:
		control, err := c.readControl()
		if err != nil {
			return err
		}
		if err := c.writeSites(control, control.PatchCount); err != nil {
			return err
		}
		if err := c.writeStruct(c.control, control); err != nil {
			return err
		}
		if err := c.installProbes(t, s); err != nil {
			return err
		}
		if err := c.placeBreaks(); err != nil {
			return err
		}
		return c.answer(t, s, uint64(control.PatchCount))
	case agent.TrapExit:
		return c.exited(t, s)
	case agent.TrapLeft, agent.TrapFatal, agent.TrapStuck, agent.TrapUnpark:
		return c.freeTrapped(t, s)
	case agent.TrapArm:
		t.index = uint32(s.regs.Rdi)
		if err := c.placer.arm(t, s.regs.Rsi); err != nil {
			return err
		}
		return c.answer(t, s, 1)
	case agent.TrapLast:
		t.index = uint32(s.regs.Rdi)
		m, err := c.placer.last(t)
		if err != nil {
			return err
		}
		if m.kind == moveHold {
			return c.park(t, &s.regs, 0)
		}
		return c.answer(t, s, 1)
	case agent.TrapDiverged:
		if c.free() {
			return c.freeDiverged(t)
		}
		return c.diverged(t)
	case agent.TrapFinished:
		if c.free() {
			return c.freeFinished(t, s)
		}
		return c.finished(t)
	case agent.TrapMoment:
		t.index = uint32(s.regs.Rdi)
		return c.momentEvent(t, s)
	}
	return fmt.Errorf("replay: the engine asked %d, which this tool does not know", what)
}

// answer lets a thread go on from its trap: the kernel has left rip behind the
// int3.
func (c *controller) answer(t *thread, s *signalStop, value uint64) error {
	regs := s.regs
	regs.Rax, regs.Orig_rax = value, ^uint64(0)
	if err := ptrace.SetRegisters(t.tid, &regs); err != nil {
		return err
	}
	return c.cont(t, 0)
}

// exited: the process would end now.
func (c *controller) exited(t *thread, s *signalStop) error {
	if err := c.identify(t); err != nil {
		return err
	}
	o := &c.stage().rec.Manifest.Outcome
	status := int(uint8(s.regs.Rdi))
	if !c.last() {
		return fmt.Errorf("replay: process %d ended before it made the process that is asked for", c.pid)
	}
	if c.free() {
		return c.freeExited(t, status)
	}
	switch o.Kind {
	case record.OutcomeExit, record.OutcomePassed:
		if o.Status == status {
			c.end = &end{kind: EndExit, thread: t, status: status}
			return nil
		}
	case record.OutcomeCut, record.OutcomeRunning:
		c.end = &end{kind: EndExit, thread: t, status: status}
		return nil
	}
	return c.diverge(t, &DivergenceError{Reason: DiffersEnd, Status: status})
}

// finished: every thread waits, and there is no event left.
func (c *controller) finished(t *thread) error {
	c.identify(t)
	if !c.last() {
		return fmt.Errorf("replay: the recording %s ended before it made the process that is asked for", c.stage().rec.Dir)
	}
	left, err := c.leftOver()
	if err != nil {
		return err
	}
	if left != 0 {
		if err := c.stuck(t, false); err != nil {
			return err
		}
		c.end.failure.(*StuckError).Cause = StuckCause(fmt.Sprintf("all threads rest, as at the recording's end, with %d of its events left", left))
		return nil
	}
	if dead := c.dead(); dead != nil && c.endsShort() {
		c.end = &end{kind: EndFault, thread: dead, signal: dead.final.signal}
		return nil
	}
	o := &c.stage().rec.Manifest.Outcome
	kind := o.Kind
	if c.endsShort() {
		kind = record.OutcomeCut
	}
	switch kind {
	case record.OutcomeSignal:
		failing := c.byIndex(o.Thread)
		if failing == nil {
			failing = t
		}
		if c.faultOutcome() && (failing.final == nil || failing.final.signal != o.Signal) {
			return c.diverge(failing, &DivergenceError{Reason: DiffersEnd})
		}
		c.end = &end{kind: EndFailure, thread: failing, signal: o.Signal}
	case record.OutcomeExit, record.OutcomePassed:
		return c.diverge(t, &DivergenceError{Reason: DiffersEnd})
	case record.OutcomeExec:
		c.end = &end{kind: EndExec, thread: t}
	default:
		c.end = &end{kind: EndLog, thread: t}
	}
	return nil
}

// leftOver counts the events that the replay should have come to and has not:
// futex calls may be left by right, and notes stand beside no call of the program.
func (c *controller) leftOver() (uint64, error) {
	control, err := c.readControl()
	if err != nil || control.Consumed >= c.stage().events || c.opts.Schedule != nil {
		return 0, err
	}
	left := uint64(0)
	done := map[uint32]uint64{}
	for e, err := range c.stage().rec.Log.Ordered() {
		if err != nil {
			break // what is behind it is not in the image either
		}
		if _, known := done[e.Thread]; !known {
			done[e.Thread] = 0
			if r, err := c.rthread(e.Thread); err == nil {
				done[e.Thread] = r.Ordinal
			}
		}
		if e.Ordinal > done[e.Thread] && e.Flags&agent.EventSoft == 0 && e.Kind != record.KindLimit {
			left++
		}
	}
	return left, nil
}

// faultOutcome tells a failure of an instruction from a signal that was sent. An
// address that is not canonical is in no siginfo; what the core says of the signal
// is that it is the kernel's own.
func (c *controller) faultOutcome() bool {
	if c.stage().rec.Manifest.Outcome.FaultAddr != nil {
		return true
	}
	if c.core == nil || !c.last() {
		return false
	}
	failing := c.core.FailingThread()
	return failing != nil && failing.Signal != nil && failing.Signal.Code == siKernel && faults[syscall.Signal(failing.Signal.Number)]
}

func (c *controller) byIndex(index uint32) *thread {
	for _, t := range c.sortedThreads() {
		if t.index == index && index != 0 {
			return t
		}
	}
	return nil
}

// nextEvent is the thread's next event in the log; nil if it has no more.
func (c *controller) nextEvent(t *thread) (*record.Event, error) {
	r, err := c.rthread(t.index)
	if err != nil {
		return nil, err
	}
	if r.Next >= r.NextEnd {
		return nil, nil
	}
	e, err := c.eventAt(r.Next)
	if err != nil {
		return nil, err
	}
	e.Thread, e.Ordinal = t.index, r.Ordinal+1
	return e, nil
}

// eventAt reads an event of the image, by its address in the process.
func (c *controller) eventAt(addr uint64) (*record.Event, error) {
	at := int64(addr) - int64(record.ImageBase)
	layout := c.stage().layout
	if at < 0 || at >= layout.Size {
		return nil, fmt.Errorf("replay: an event at %#x, outside of the image", addr)
	}
	var head [8]byte
	if _, err := c.stage().image.ReadAt(head[:4], at); err != nil {
		return nil, fmt.Errorf("replay: image: %w", err)
	}
	length := int64(head[0]) | int64(head[1])<<8 | int64(head[2])<<16 | int64(head[3])<<24
	if length > layout.Size-at {
		return nil, fmt.Errorf("replay: an event of %d bytes at %#x", length, addr)
	}
	b := make([]byte, length)
	if _, err := c.stage().image.ReadAt(b, at); err != nil {
		return nil, fmt.Errorf("replay: image: %w", err)
	}
	e, _, err := record.DecodeEvent(b)
	return e, err
}

// writeSites appends to the patch table, at the control's count, those of the
// recording that are for objects loaded by now. They are in the order in which
// they were loaded; behind those of one time come others, whose code is not
// there or is another object's.
func (c *controller) writeSites(control *agent.RawControl, from uint32) error {
	sites := c.stage().sites
	maps, err := readMaps(c.pid)
	if err != nil {
		return err
	}
	count := int(from)
	for ; (count+1)*siteSize <= len(sites); count++ {
		var site agent.RawSitePatch
		if _, err := binary.Decode(sites[count*siteSize:], binary.LittleEndian, &site); err != nil {
			return err
		}
		if !maps.executable(site.At) || !c.isSite(&site) {
			break
		}
	}
	table := sites[int(from)*siteSize : count*siteSize]
	control.PatchCount = uint32(count)
	if len(table) == 0 {
		return nil
	}
	at := agent.EngineSites + uint64(from)*siteSize
	if _, err := c.memory.WriteAt(table, int64(at)); err == nil {
		return nil
	}
	if err := c.mapSites(at, uint64(len(table))); err != nil {
		return err
	}
	_, err = c.memory.WriteAt(table, int64(at))
	return err
}

// isSite reports whether the instruction of a patch is there.
func (c *controller) isSite(site *agent.RawSitePatch) bool {
	if site.Kind == agent.PatchTSCTrap {
		return true // it is not replaced
	}
	if site.Kind != agent.PatchTSC {
		return c.holds(site.Resume-2, 0x0f, 0x05)
	}
	return c.holds(site.Resume-2, 0x0f, 0x31) || c.holds(site.Resume-3, 0x0f, 0x01, 0xf9)
}

// holds reports whether these bytes are at an address.
func (c *controller) holds(at uint64, want ...byte) bool {
	code := make([]byte, len(want))
	_, err := c.memory.ReadAt(code, int64(at))
	return err == nil && bytes.Equal(code, want)
}

// mapSites makes room for a table that is larger than the engine's.
func (c *controller) mapSites(at, length uint64) error {
	const step, page = 16 << 20, 4096
	start, end := (at+page-1)/page*page, (at+length+step-1)/step*step
	got, err := ptrace.SystemCall(c.pid, unix.SYS_MMAP, start, end-start, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0)
	if err != nil {
		return err
	}
	if got < 0 && got != -int64(unix.EEXIST) {
		return fmt.Errorf("replay: memory for the patch table: %w", unix.Errno(-got))
	}
	return nil
}
