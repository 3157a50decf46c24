package verdict

import (
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/patterns"
	"diagnose/replay"
)

// orderState is what became of an order of accesses in a replay.
type orderState int

const (
	orderUnknown orderState = iota
	// orderKept: the accesses came in the order of the pattern, orderRemoved: in another one,
	// orderAbsent: some of them did not come.
	orderKept
	orderRemoved
	orderAbsent
)

// Why an experiment on an order of accesses decides nothing.
const (
	keptAllTheSame   = "the accesses came in the recorded order all the same"
	notSeenToBeOther = "the accesses were not seen to come in another order"
	// notSeenAsRecorded is of one that was to leave the order as it was.
	notSeenAsRecorded = "the accesses were not seen to come in the recorded order"
)

// orderLook looks at the accesses of a candidate in one replay, by traps at their instructions. One
// replay has one order: nothing has to be merged, as in a log.
type orderLook struct {
	accesses []*lookedFor // in the order of the pattern
	// checks are what the failing check reads, by threads other than the failing one, if the pattern is that a write comes too late; write is the
	// first of that, by any thread, the writer.
	checks []*lookedFor
	write  *lookedFor
	writer uint32
	// place is the failing check, whatever it reads, and failing the thread that failed there. came are the other threads that came there before
	// the write, read those that made its reads.
	place      evidence.Addr
	failing    uint32
	came, read map[uint32]bool
	stops      int
	cut        bool
}

// lookedFor is an access of a pattern: one of a thread's arrivals at an instruction that access the
// memory.
type lookedFor struct {
	thread uint32 // 0: any but the thread not
	not    uint32
	inst   x86.Inst
	addr   evidence.Addr
	size   int
	nth    uint64
	// came counts the arrivals; at numbers the stops at which nth was reached, from 1; 0: it was not.
	came uint64
	at   int
}

// look makes the look at a candidate's accesses in the failing run; nil: they cannot be told by their
// instructions.
func (r *race) look(c *patterns.Candidate) *orderLook {
	log := r.failing[c.Run].log
	l := &orderLook{}
	for _, i := range c.Accesses {
		a := r.lookFor(log, i)
		if a == nil {
			return nil
		}
		l.accesses = append(l.accesses, a)
	}
	if c.Never && len(c.Passing) > 0 && len(l.accesses) == 1 {
		// The access that the failing run lacks, as any other thread may make it.
		if missing := r.lookFor(r.passing[c.PassingRun].log, c.Passing[0]); missing != nil {
			read := l.accesses[0]
			missing.addr, missing.nth, missing.thread, missing.not = read.addr, 1, 0, read.thread
			l.accesses = append(l.accesses, missing)
		}
	}
	if len(l.accesses) < 2 {
		return nil
	}
	if _, _, late := r.comesLate(c); late {
		write := *l.accesses[1]
		write.nth, write.thread, write.not = 1, 0, 0
		l.write, l.checks = &write, r.checksOfOthers(c.Run)
		l.place, l.failing = r.reached.prepared().pc, r.failing[c.Run].rec.Manifest.Outcome.Thread
		l.came, l.read = map[uint32]bool{}, map[uint32]bool{}
	}
	return l
}

// checksOfOthers are the reads of the failing check as threads other than the failing one may make them.
func (r *race) checksOfOthers(run int) []*lookedFor {
	var list []*lookedFor
	log, reads := r.failing[run].log, r.checkReads(run)
	for i := range log.Accesses {
		a := &log.Accesses[i]
		read := checkReadOf(log, a)
		if !reads[read] {
			continue
		}
		delete(reads, read)
		if f := r.lookFor(log, i); f != nil {
			list = append(list, f)
		}
	}
	return list
}

// passedBefore reports whether another thread made the failing check before the write that comes too late by the pattern. In a replay without
// the failure it passed: the write is not what the check needs. The writer itself may have to pass it first. same: the check read the same words;
// else it is not known what it reads.
func (l *orderLook) passedBefore(unbroken []evidence.Addr) (passed, same bool) {
	if l == nil || l.write == nil || l.cut || slices.Contains(unbroken, evidence.Addr(l.write.inst.PC)) {
		return false, false
	}
	threads, same := l.came, len(l.checks) > 0
	if same {
		threads = l.read
	}
	for thread := range threads {
		passed = passed || thread != l.writer
	}
	return passed, same
}

// noteChecks notes a thread that makes the failing check before the write.
func (l *orderLook) noteChecks(thread uint32, regs *image.Registers) {
	if l.write == nil || l.write.at > 0 || thread == l.failing {
		return
	}
	if regs.PC() == l.place {
		l.came[thread] = true
	}
	for _, f := range l.checks {
		if evidence.Addr(f.inst.PC) == regs.PC() && f.accesses(regs) {
			l.read[thread] = true
		}
	}
}

// lookFor is how an access of a log is found again in another order; nil: it cannot be.
func (r *race) lookFor(log *evidence.AccessLog, index int) *lookedFor {
	a := &log.Accesses[index]
	if a.By != evidence.ByProgram || a.Handler != 0 {
		return nil
	}
	const longest = 15 // bytes of an instruction (Intel SDM, volume 2, 2.3.11)
	code := make([]byte, longest)
	n, _ := r.Process.ReadMemory(a.PC, code) // as far as it goes
	in, err := x86.Decode(code[:n], uint64(a.PC))
	if err != nil || strings.HasPrefix(in.Op, "rep") {
		return nil
	}
	f := &lookedFor{thread: a.Thread, inst: in, addr: log.Variables[a.Variable].Address + evidence.Addr(a.Offset), size: int(a.Size)}
	for i := range index + 1 {
		if b := &log.Accesses[i]; b.Thread == a.Thread && b.PC == a.PC && b.Variable == a.Variable && b.Offset == a.Offset {
			f.nth++
		}
	}
	return f
}

// breaks are the traps of the look.
func (l *orderLook) breaks() []replay.Break {
	if l == nil {
		return nil
	}
	var list []replay.Break
	watched := slices.Concat(l.accesses, l.checks) // write is the second access
	for i, a := range watched {
		first := slices.IndexFunc(watched, func(b *lookedFor) bool { return b.inst.PC == a.inst.PC })
		if first == i {
			list = append(list, replay.Break{PC: evidence.Addr(a.inst.PC), Do: l.stop})
		}
	}
	if l.place != 0 && !slices.ContainsFunc(list, func(b replay.Break) bool { return b.PC == l.place }) {
		list = append(list, replay.Break{PC: l.place, Do: l.stop})
	}
	return list
}

// stop is called where a thread is about to execute one of the instructions.
func (l *orderLook) stop(s *replay.Stopped) error {
	if l.stops++; l.stops > mostReached {
		l.cut = true
		return replay.ErrBreakOver
	}
	regs, err := s.Registers()
	if err != nil {
		return err
	}
	l.noteChecks(s.Moment.Thread, &regs)
	for _, a := range l.accesses {
		a.note(s.Moment.Thread, &regs, l.stops)
	}
	if l.write != nil && l.write.note(s.Moment.Thread, &regs, l.stops) {
		l.writer = s.Moment.Thread
	}
	return nil
}

// note counts an arrival if it is one, and reports whether it is the one that was looked for.
func (a *lookedFor) note(thread uint32, regs *image.Registers, stop int) bool {
	if evidence.Addr(a.inst.PC) != regs.PC() || !a.by(thread) || !a.accesses(regs) {
		return false
	}
	if a.came++; a.came == a.nth {
		a.at = stop
	}
	return a.came == a.nth
}

func (a *lookedFor) by(thread uint32) bool {
	return a.thread == thread || a.thread == 0 && a.not != thread
}

// accesses reports whether the instruction accesses the memory with these registers.
func (a *lookedFor) accesses(regs *image.Registers) bool {
	return slices.ContainsFunc(a.inst.Operands, func(o x86.Operand) bool {
		if !o.IsMemory || o.Memory.Segment != x86.SegNone {
			return false
		}
		at, known := o.Memory.Address(func(r x86.Reg) (uint64, bool) { return regs.Get(image.Register(r)) })
		return known && at < uint64(a.addr)+uint64(a.size) && uint64(a.addr) < at+uint64(max(o.Size, 1))
	})
}

// unordered reports whether the log that has two accesses does not tell their order: they are one thread's, of several variables, which
// several passes may have logged. Between two events nothing says then which came first.
func (a *lookedFor) unordered(b *lookedFor) bool { return a.thread == b.thread && a.addr != b.addr }

// state is what the replay came to. unbroken are the traps that it had to remove.
func (l *orderLook) state(unbroken []evidence.Addr) orderState {
	if l == nil || l.cut {
		return orderUnknown
	}
	last, absent, removed := &lookedFor{}, false, false
	for _, a := range l.accesses {
		if slices.Contains(unbroken, evidence.Addr(a.inst.PC)) {
			return orderUnknown
		}
		absent = absent || a.at == 0
		removed = removed || a.at > 0 && a.at < last.at && !a.unordered(last)
		if a.at > last.at {
			last = a
		}
	}
	switch {
	case removed:
		return orderRemoved
	case absent:
		return orderAbsent
	}
	return orderKept
}

// guard is a read of the failing thread, among the accesses of a pattern, that may have decided whether
// the thread comes to the check. Positions are those in the pattern.
type guard struct {
	read int
	// last is the access that the thread does not come to if the read turns it away; -1: it may come
	// to all of them, as the check is after them.
	last int
}

// guardOf is the guard among a candidate's accesses; nil: there is none. Either the thread accesses the
// variable once more, for which the guard then looked too early; or the variable is the last of all
// that the thread read, where the scan knows all memory that the failing code reads.
func (r *race) guardOf(c *patterns.Candidate) *guard {
	if len(c.Accesses) < 2 || len(c.Variables) != 1 || r.Case.Scan == nil {
		return nil
	}
	log, failing := r.failing[c.Run].log, r.failing[c.Run].rec.Manifest.Outcome.Thread
	own := slices.IndexFunc(c.Accesses, func(i int) bool { return log.Accesses[i].Thread == failing })
	if own < 0 || log.Accesses[c.Accesses[own]].Kind != evidence.CodeRead {
		return nil
	}
	last := len(c.Accesses) - 1
	if own < last && log.Accesses[c.Accesses[last]].Thread == failing {
		return &guard{own, last}
	}
	for i := range slices.Backward(log.Accesses) {
		a := &log.Accesses[i]
		if a.Thread == failing && a.Kind != evidence.CodeWrite && a.By == evidence.ByProgram {
			if r.Case.Scan.Unresolved > 0 || log.Variables[a.Variable].Name != c.Variables[0] {
				return nil
			}
			return &guard{own, -1}
		}
	}
	return nil
}

// turned reports whether in a replay with another order the guard was read and may have turned the
// thread away.
func (g *guard) turned(l *orderLook, unbroken []evidence.Addr) bool {
	return g != nil && l.state(unbroken) == orderRemoved && l.accesses[g.read].at > 0 && (g.last < 0 || l.accesses[g.last].at == 0)
}

// asLogged reports whether a replay without a change has a candidate's accesses in the order that the
// logs of several passes were merged to. An order that no replay has explains nothing.
func (r *race) asLogged(c *patterns.Candidate) bool {
	l := r.look(c)
	if l == nil {
		return true
	}
	t := r.work.experiments.outcome(r.failing[c.Run].rec, replay.FreeRequest{Breaks: l.breaks()})
	return !t.failed || l.state(t.unbroken) != orderRemoved
}
