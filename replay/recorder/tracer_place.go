package recorder

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/recorder/sites"
)

// The place at which a signal arrives, or the process ends, must be one that a replay reaches
// again. In the program it is identified by the thread's state, in the engine by the event that
// the thread is at. The library's actions outside of its engine depend on what other threads do
// at the time: how a lock is taken, which thread wakes which. A thread that is found there
// continues until it has left: tracer_delay.go for signals, tracer_settle.go for the end.

// whereabouts says which code a thread executes.
type whereabouts int

const (
	inProgram whereabouts = iota
	// inTransit is in the library outside of its engine, in the stub of a point, or in the stub
	// that creates a thread, where a register has a number that the kernel assigns again in
	// each run.
	inTransit
	inEngine
)

// standing is where a stopped thread is.
type standing struct {
	whereabouts
	regs ptrace.Registers
	// asleep: in a system call that waits.
	asleep bool
}

// The kernel's results of calls that a stop interrupted (linux/errno.h). The kernel restarts
// the call or, with EINTR, returns to the program.
const (
	errRestartSys      = 512
	errRestartNoIntr   = 513
	errRestartNoHand   = 514
	errRestartRestarts = 516
)

// standing examines where a stopped thread of a recorded process is.
func (r *recording) standing(x *tracee) (standing, error) {
	var s standing
	var err error
	if s.regs, err = ptrace.GetRegisters(x.tid); err != nil {
		return s, err
	}
	if int64(s.regs.Orig_rax) >= 0 {
		switch -int64(s.regs.Rax) {
		case errRestartSys, errRestartNoIntr, errRestartNoHand, errRestartRestarts, int64(unix.EINTR):
			s.asleep = true
		}
	}
	inside, cloning := r.inEngine(x)
	pc := s.regs.Rip
	atomic, err := sites.InAtomicStub(r.memory, r.controlAt, pc)
	if err != nil {
		return s, err
	}
	switch {
	case inside || pc >= r.control.TextLow && pc < r.control.TextHigh:
		s.whereabouts = inEngine
	case cloning || pc >= r.text.Start && pc < r.text.End || r.points.InStub(pc) || atomic:
		s.whereabouts = inTransit
	}
	return s, nil
}

// inEngine returns the engine's state of a thread; false for a thread that the engine does not
// know (yet, or any more).
func (r *recording) inEngine(x *tracee) (inside, cloning bool) {
	raw, ok := r.engineThread(x)
	return ok && raw.Inside != 0, ok && raw.Cloning != 0
}

// engineThread reads the engine's data of a thread up to Cloning; ok is false for a thread that
// the engine does not know.
func (r *recording) engineThread(x *tracee) (raw agent.RawRThread, ok bool) {
	p := (*[unsafe.Offsetof(raw.CloningNr)]byte)(unsafe.Pointer(&raw)) // in the layout of this machine
	read := func() bool {
		_, err := r.memory.ReadAt(p[:], int64(agent.RThreadAddress(x.index)))
		return err == nil && raw.RealTID == uint32(x.tid) && raw.State != agent.REnded
	}
	if x.index == 0 || !read() {
		if x.index, _ = r.place(x.tid); x.index == 0 || !read() {
			return raw, false
		}
	}
	return raw, true
}

// timerReturned returns when a thread last returned from the handler of a timer's signal, in ns of
// CLOCK_MONOTONIC; 0: never. ok is false for a thread that the engine does not know.
func (r *recording) timerReturned(x *tracee) (at int64, ok bool) {
	raw, ok := r.engineThread(x)
	return int64(raw.TimerReturned), ok
}

// number looks up the engine's numbers of all threads of a process at once.
func (r *recording) number(p *process) {
	r.eachThread(func(i uint32, raw *agent.RawRThread) bool {
		if x := p.threads[int(raw.RealTID)]; x != nil {
			x.index = i // of two, the younger: the other one has ended
		}
		return true
	})
}

// libraryText is the mapping of the library's code, which contains the engine's entry points.
func libraryText(maps []record.Mapping, entry uint64) sites.Addresses {
	for i := range maps {
		if m := &maps[i]; uint64(m.Start) <= entry && entry < uint64(m.End) {
			return sites.Addresses{Start: uint64(m.Start), End: uint64(m.End)}
		}
	}
	return sites.Addresses{}
}

// crawls reports whether a single step is not possible at a pc: the system call there may wait,
// or the instruction repeats, with a step for each repetition.
func (r *recording) crawls(pc uint64) bool {
	var code [4]byte
	if _, err := r.memory.ReadAt(code[:], int64(pc)); err != nil {
		return false
	}
	if code[0] == 0x0f && code[1] == 0x05 {
		return true
	}
	repeats := false
	for _, c := range code {
		switch {
		case c == 0xf2 || c == 0xf3:
			repeats = true
		case c >= 0x40 && c <= 0x4f || c == 0x66:
		default:
			return repeats && (c >= 0xa4 && c <= 0xa7 || c >= 0xaa && c <= 0xaf)
		}
	}
	return false
}

// endsLast makes the event of the process's end, which is the last one of its thread, the last
// of all. The events of other threads until they stopped are before it.
func (r *recording) endsLast(x *tracee) {
	c, err := readControl(r.memory, r.controlAt)
	index, _ := r.place(x.tid)
	if err != nil || index == 0 || c.Stopped != 0 {
		return
	}
	at, err := r.memory.Word(agent.RThreadAddress(index) + uint64(unsafe.Offsetof(agent.RawRThread{}.At)))
	if err != nil {
		return
	}
	var raw agent.RawEvent
	p := make([]byte, binary.Size(&raw))
	event := at - uint64(len(p)) // it has neither arguments nor payloads
	if _, err := r.memory.ReadAt(p, int64(event)); err != nil {
		return
	}
	if _, err := binary.Decode(p, binary.LittleEndian, &raw); err != nil || raw.Kind != agent.EvEnd || int(raw.Length) != len(p) {
		return
	}
	if r.memory.SetWord(event+uint64(unsafe.Offsetof(raw.Ticket)), c.Ticket) == nil {
		r.memory.SetWord(r.controlAt+uint64(unsafe.Offsetof(c.Ticket)), c.Ticket+1)
	}
}
