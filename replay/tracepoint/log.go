package tracepoint

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/inline"
	"diagnose/replay/ptrace"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// Offsets in the memory that the process shares with the tool.
const (
	blockHead     = 0  // address of the next entry
	blockEnd      = 8  // no entry begins there or later
	blockLeft     = 16 // the entries until a thread stops after one
	blockArrivals = 24 // of all rules
	blockNumber   = 32 // the last Entry.Number
	blockAsk      = 64 // the state of the question of the thread with the right to run: asking.go
	blockAsker    = 72 // the address of its own memory
	blockAnswers  = 80 // 1: the tool looks for questions
	blockText     = 4096
	blockOwn      = 2 * 4096
	// logBytes is the size of the log, which is after the threads' own memory. mostOwnBytes bounds the latter.
	logBytes     = 4 << 20
	mostOwnBytes = 64 << 20
	mostThreads  = 4096
	// mostText is how many ranges of text the table has room for, and the mark at its end.
	mostText = 4096/16 - 1
)

// Offsets in a thread's own memory, to which %gs points.
const (
	ownAX     = 0
	ownCX     = 8
	ownDX     = 16
	ownFlags  = 24 // as lahf and seto give them
	ownTID    = 32 // the kernel's
	ownIndex  = 40
	ownEntry  = 48
	ownReturn = 56
	ownSlow   = 64
	ownTemp   = 72  // mostTemps words
	ownAsked  = 256 // the registers of a thread that asks: asking.go
	ownVector = ownAsked + 128
	ownSlots  = ownVector + ptrace.FXSaveBytes
	mostTemps = (ownAsked - ownTemp) / word
)

// Offsets in the slot that a thread has for each rule, in its own memory.
const (
	slotOrdinal = 0
	slotCount   = 8  // of arrivals since that event
	slotHits    = 16 // of all arrivals
	slotBytes   = 24
)

// Offsets in an entry.
const (
	entryRule     = 0 // and the thread's index
	entryOrdinal  = 8
	entryPosition = 16
	entryCount    = 24
	entryNumber   = 32
	entryValues   = 40
)

// processLog is what code in the process writes for rules.
type processLog struct {
	rules []*placedRule
	block []byte // shared
	base  uint64 // its address in the process
	// ownBytes is the size of a thread's own memory. owns are those of threads, by the kernel's id.
	ownBytes int
	owns     map[int]int
	// done is the offset of the first entry that was not taken.
	done int
	// full and last stand for the int3 of a thread that finds no room for its entry, and of one that has written the last entry that it
	// may.
	full, last *inline.Site
	// codes are the code of the rules and of the instructions at which threads ask, sharedCode the code that they share.
	codes      []*ruleCode
	sharedCode []tracee.Span
	// reported are the arrivals that were reported.
	reported uint64
}

// newProcessLog returns the log of instructions. asks: at those without a rule, threads ask.
func newProcessLog(at []uint64, rules map[evidence.Addr]*Rule, asks bool) *processLog {
	l := &processLog{owns: map[int]int{}, full: &inline.Site{}, last: &inline.Site{}}
	for _, pc := range at {
		r := rules[evidence.Addr(pc)]
		if r == nil && !asks {
			continue
		}
		x := &placedRule{Rule: r, pc: evidence.Addr(pc), number: len(l.rules), seen: map[int]uint64{}}
		if r == nil {
			x.Rule, x.asks = &Rule{}, true
		}
		l.rules = append(l.rules, x)
	}
	return l
}

// at returns the rule at an instruction; nil: there is none.
func (l *processLog) at(pc uint64) *placedRule {
	i, found := slices.BinarySearchFunc(l.rules, evidence.Addr(pc), func(r *placedRule, pc evidence.Addr) int { return cmp.Compare(r.pc, pc) })
	if !found || l.block == nil {
		return nil
	}
	return l.rules[i]
}

// placedRule is a rule at its instruction.
type placedRule struct {
	*Rule
	pc     evidence.Addr
	number int
	// asks: the thread asks the tool, and writes no entry.
	asks bool
	// seen are the arrivals that were reported, by the kernel's id of the thread.
	seen map[int]uint64
}

func (l *processLog) slot(rule int) int { return ownSlots + rule*slotBytes }

func (l *processLog) logStart() int { return blockOwn + l.threads()*l.ownBytes }

func (l *processLog) threads() int { return min(mostThreads, mostOwnBytes/l.ownBytes) }

// errOwnGS says that the program uses %gs.
var errOwnGS = errors.New("replay: the program uses %gs itself")

// share maps the memory in both processes.
func (l *processLog) share(p *tracee.Process, t *tracee.Thread) error {
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return err
	}
	if regs.Gs_base != 0 {
		return errOwnGS
	}
	l.ownBytes = (l.slot(len(l.rules)) + 63) &^ 63
	size := (l.logStart() + logBytes + tracee.PageSize - 1) &^ (tracee.PageSize - 1)
	fd, err := unix.MemfdCreate("diagnose", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("replay: memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "memfd")
	defer f.Close()
	if err := f.Truncate(int64(size)); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if l.block, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("replay: mmap: %w", err)
	}
	if l.base, err = p.MapShared(t, regs.Rip, recorded.PathOf(f), uint64(size)); err != nil {
		return err
	}
	p.Shared = append(p.Shared, tracee.Span{Start: l.base, End: l.base + uint64(size)})
	most := 0
	for _, r := range l.rules {
		most = max(most, r.size())
	}
	l.word(blockEnd).Store(l.base + uint64(l.logStart()+logBytes-most))
	l.word(blockLeft).Store(^uint64(0))
	l.empty()
	for _, t := range p.Threads {
		if t.Stopped {
			if err := l.arm(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// word returns a word of the block that both processes write.
func (l *processLog) word(offset int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&l.block[offset]))
}

// empty makes room for entries. All were taken, and no thread writes one.
func (l *processLog) empty() {
	l.done = l.logStart()
	l.word(blockHead).Store(l.base + uint64(l.done))
}

// arm gives a stopped thread its own memory. A thread that gets none stops at each arrival.
func (l *processLog) arm(t *tracee.Thread) error {
	if l.block == nil {
		return nil
	}
	n, known := l.owns[t.TID]
	if !known {
		if len(l.owns) == l.threads() {
			return ptrace.SetGSBase(t.TID, 0)
		}
		n = len(l.owns)
		l.owns[t.TID] = n
	}
	at := blockOwn + n*l.ownBytes
	for i := range l.rules { // an earlier thread may have had the kernel's id
		slot := l.block[at+l.slot(i):]
		binary.LittleEndian.PutUint64(slot[slotOrdinal:], 0)
		binary.LittleEndian.PutUint64(slot[slotCount:], 0)
	}
	binary.LittleEndian.PutUint32(l.block[at+ownTID:], uint32(t.TID))
	binary.LittleEndian.PutUint64(l.block[at+ownSelf:], l.base+uint64(at))
	return ptrace.SetGSBase(t.TID, l.base+uint64(at))
}

// own returns the own memory of a thread; nil: it has none.
func (l *processLog) own(tid int) []byte {
	n, known := l.owns[tid]
	if !known || l.block == nil {
		return nil
	}
	at := blockOwn + n*l.ownBytes
	return l.block[at : at+l.ownBytes]
}

// arrive counts an arrival of a thread that has stopped. counted is false if the thread has no own memory.
func (l *processLog) arrive(tid int, r *placedRule, ordinal uint64) (count uint64, counted bool) {
	own := l.own(tid)
	if own == nil {
		return 0, false
	}
	slot := own[l.slot(r.number):]
	if binary.LittleEndian.Uint64(slot[slotOrdinal:]) != ordinal {
		binary.LittleEndian.PutUint64(slot[slotOrdinal:], ordinal)
		binary.LittleEndian.PutUint64(slot[slotCount:], 0)
	}
	count = binary.LittleEndian.Uint64(slot[slotCount:]) + 1
	binary.LittleEndian.PutUint64(slot[slotCount:], count)
	return count, true
}

// drain passes on the entries and the arrivals since the last call.
// t is the thread that has stopped after the last entry; nil: none has.
func (l *processLog) drain(to Replay, t *tracee.Thread) error {
	if l.block == nil {
		return nil
	}
	if arrivals := l.word(blockArrivals).Load(); arrivals != l.reported {
		l.reported = arrivals
		l.report(to)
	}
	head := l.word(blockHead).Load() - l.base
	if head < uint64(l.done) || head > uint64(len(l.block)) {
		return fmt.Errorf("replay: the log of the process ends at %#x, which is outside of it", head)
	}
	for l.done < int(head) {
		e, size, err := l.entry(l.block[l.done:head])
		if err != nil {
			return err
		}
		l.done += size
		if err := to.Logged(e, t); err != nil {
			return err
		}
	}
	l.makeRoom(to)
	return nil
}

// report reports the arrivals of the threads.
func (l *processLog) report(to Replay) {
	if l.block == nil {
		return
	}
	for tid := range l.owns {
		own := l.own(tid)
		thread := binary.LittleEndian.Uint32(own[ownIndex:])
		for _, r := range l.rules {
			hits := binary.LittleEndian.Uint64(own[l.slot(r.number)+slotHits:])
			if n := hits - r.seen[tid]; n != 0 {
				r.seen[tid] = hits
				to.Counted(r.pc, thread, n)
			}
		}
	}
}

// makeRoom sets the number of entries until a thread stops.
func (l *processLog) makeRoom(to Replay) {
	if l.block != nil {
		l.word(blockLeft).Store(to.Room())
	}
}

// entry reads an entry. The process may have overwritten it.
func (l *processLog) entry(b []byte) (*Entry, int, error) {
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	if len(b) < entryValues || uint64(uint32(number(entryRule))) >= uint64(len(l.rules)) {
		return nil, 0, errors.New("replay: the log of the process is damaged")
	}
	r := l.rules[uint32(number(entryRule))]
	size := r.size()
	if len(b) < size {
		return nil, 0, errors.New("replay: the log of the process is damaged")
	}
	e := &Entry{PC: r.pc, Thread: uint32(number(entryRule) >> 32), Ordinal: number(entryOrdinal), Position: number(entryPosition),
		Count: number(entryCount), Number: number(entryNumber), Values: make([]Logged, 0, len(r.Values))}
	at := entryValues
	for i := range r.Values {
		v := &r.Values[i]
		x := Logged{Address: evidence.Addr(number(at))}
		switch {
		case v.Address != nil:
			x.Data = b[at+word : at+word+v.Size]
		case v.Text:
			x.Data = b[at+word : at+word+TextBytes]
		}
		e.Values = append(e.Values, x)
		at += v.size()
	}
	return e, size, nil
}

// forget takes the own memory from all threads.
func (l *processLog) forget(p *tracee.Process) error {
	if l.block == nil {
		return nil
	}
	for tid, t := range p.Threads {
		if !t.Stopped {
			continue
		}
		if err := ptrace.SetGSBase(tid, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

func (l *processLog) close() {
	if l.block != nil {
		unix.Munmap(l.block)
		l.block = nil
	}
}
