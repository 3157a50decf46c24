package watchpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// UnsupportedError says that this machine lacks something that a back end needs.
type UnsupportedError struct {
	Backend Backend
	Err     error
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("replay: the back end %s does not work here: %v", e.Backend, e.Err)
}

func (e *UnsupportedError) Unwrap() error { return e.Err }

// kernelWatches are watches as perf events, one for each thread and word. A program in the kernel
// records each access, without a stop or a switch to another process.
type kernelWatches struct {
	tr      *Tracing
	program *ebpf.Program
	ring    *ebpf.Map
	lost    *ebpf.Map
	code    *ebpf.Map // codeTells..., by pc
	last    *ebpf.Map
	// tried counts, by pc, how often the code told the right value; -1: it told a wrong one or
	// none.
	tried  map[uint64]int
	reader *ringbuf.Reader
	record ringbuf.Record
	// events are the perf events of each thread, by the kernel's id.
	events map[int][]int
	// group is the last sighting, to which further watches of the same instruction are added.
	group *sighting
}

const (
	ringBytes = 32 << 20
	// mostKnownCode bounds the pcs whose code the kernel's program is told about.
	mostKnownCode = 1 << 14
	// trials is how often the value that the code tells must have been right before it is used.
	trials = 3
	// ringInterval is how often the ring is emptied while the process runs: the reader must not
	// take the processor from it.
	ringInterval = 2 * time.Millisecond
)

func newKernelWatches(tr *Tracing) (*kernelWatches, error) {
	k := &kernelWatches{tr: tr, events: map[int][]int{}, tried: map[uint64]int{}}
	if err := k.load(); err != nil {
		k.close()
		return nil, &UnsupportedError{BackendBPF, err}
	}
	return k, nil
}

func (k *kernelWatches) load() (err error) {
	if k.ring, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: ringBytes}); err != nil {
		return err
	}
	if k.lost, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}); err != nil {
		return err
	}
	if k.code, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 8, ValueSize: 8, MaxEntries: mostKnownCode}); err != nil {
		return err
	}
	if k.last, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: tracee.DebugRegisters}); err != nil {
		return err
	}
	maps := senderMaps{ring: k.ring.FD(), lost: k.lost.FD(), code: k.code.FD(), last: k.last.FD()}
	k.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.PerfEvent, License: "GPL",
		Instructions: newSender(k.tr.watches, k.tr.asked.Locks, k.ownCode(), maps)})
	if err != nil {
		return err
	}
	k.reader, err = ringbuf.NewReader(k.ring)
	return err
}

// ownCode returns the mapping of the program's executable; empty if it is not known.
func (k *kernelWatches) ownCode() tracee.Span {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", k.tr.process.PID))
	if err != nil {
		return tracee.Span{}
	}
	maps, err := tracee.ReadMaps(k.tr.process.PID)
	if err != nil {
		return tracee.Span{}
	}
	var own tracee.Span
	for i := range maps {
		if maps[i].Path != path {
			continue
		}
		if own.End == 0 {
			own.Start = maps[i].Start
		}
		own.End = maps[i].End
	}
	return own
}

func (k *kernelWatches) close() {
	for tid := range k.events {
		k.ended(tid)
	}
	if k.reader != nil {
		k.reader.Close()
	}
	for _, c := range []io.Closer{k.program, k.ring, k.lost, k.code, k.last} {
		c.Close() // does nothing if there is none
	}
}

// arm arms the watches of a thread before its first instruction.
func (k *kernelWatches) arm(tid int) error {
	for i := range k.tr.watches {
		fd, err := k.open(tid, &k.tr.watches[i])
		if err != nil {
			return err
		}
		k.events[tid] = append(k.events[tid], fd)
	}
	return nil
}

func (k *kernelWatches) open(tid int, w *tracee.Watch) (int, error) {
	const write, readWrite = 2, 3 // HW_BREAKPOINT_...
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_BREAKPOINT, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Sample: 1,
		Bp_type: readWrite, Ext1: uint64(w.Addr), Ext2: uint64(w.Size),
		Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv | unix.PerfBitDisabled,
	}
	if w.Writes {
		attr.Bp_type = write
	}
	fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if errors.Is(err, unix.ENOSPC) {
		return 0, &tracee.RegisterError{Watches: len(k.tr.watches)}
	}
	if err != nil {
		return 0, &UnsupportedError{BackendBPF, fmt.Errorf("perf_event_open: %w", err)}
	}
	err = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, k.program.FD())
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0)
	}
	if err != nil {
		unix.Close(fd)
		return 0, &UnsupportedError{BackendBPF, fmt.Errorf("a program for a perf event: %w", err)}
	}
	return fd, nil
}

func (k *kernelWatches) ended(tid int) {
	for _, fd := range k.events[tid] {
		unix.Close(fd)
	}
	delete(k.events, tid)
}

// drain takes the records of the ring. Further watches of the last instruction may follow, unless
// its thread is stopped.
func (k *kernelWatches) drain(stands func(tid int) bool) error {
	for k.reader.AvailableBytes() > 0 {
		k.reader.SetDeadline(time.Now())
		err := k.reader.ReadInto(&k.record)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return fmt.Errorf("replay: the ring of accesses: %w", err)
		}
		if err := k.received(k.record.RawSample); err != nil {
			return err
		}
	}
	if k.group != nil && stands != nil && stands(k.group.thread) {
		return k.flush()
	}
	return nil
}

func (k *kernelWatches) flush() error {
	s := k.group
	k.group = nil
	if s == nil {
		return nil
	}
	return k.tr.take(s, nil)
}

// received adds a record to its sighting: an instruction that accesses several watched words is
// sent once for each.
func (k *kernelWatches) received(p []byte) error {
	if len(p) < sentStack {
		return fmt.Errorf("replay: %d bytes of an access", len(p))
	}
	s, err := k.sighting(p)
	if err != nil {
		return err
	}
	if g := k.group; g != nil && g.thread == s.thread && g.regs == s.regs && g.position == s.position && g.watches&s.watches == 0 {
		for i := range k.tr.watches {
			if s.watches&(1<<i) != 0 {
				g.words[i] = s.words[i]
			}
		}
		g.watches |= s.watches
		g.valid |= s.valid
		return nil
	}
	if err := k.flush(); err != nil {
		return err
	}
	k.group = s
	return nil
}

func (k *kernelWatches) sighting(p []byte) (*sighting, error) {
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(p[at:]) }
	s := &sighting{regs: registersOf(p), thread: int(uint32(word(sentThread))), held: word(sentHeld)}
	addr := evidence.Addr(word(sentAddress))
	for i, w := range k.tr.watches {
		if w.Addr == addr {
			s.watches |= 1 << i
		}
		if word(sentMissing+8*i) == 0 {
			s.valid |= 1 << i
			s.words[i] = word(sentWords + 8*i)
		}
	}
	if bits.OnesCount8(s.watches) != 1 {
		return nil, fmt.Errorf("replay: an access to %v, which is not watched", addr)
	}
	s.position = word(sentConsumed)
	var r agent.RawRThread
	slot := p[sentSlot:]
	if binary.LittleEndian.Uint32(slot[unsafe.Offsetof(r.RealTID):]) == uint32(s.thread) {
		s.index = binary.LittleEndian.Uint32(slot[unsafe.Offsetof(r.Index):])
		s.tid = binary.LittleEndian.Uint32(slot[unsafe.Offsetof(r.TID):])
		s.inside = binary.LittleEndian.Uint64(slot[unsafe.Offsetof(r.Inside):])
		s.ordinal = binary.LittleEndian.Uint64(slot[unsafe.Offsetof(r.Ordinal):])
		s.turn = word(sentTurns)
		s.regs.Fs_base = word(sentPointer)
		k.tr.indices[s.thread] = s.index
	} else if err := k.tr.identify(s); err != nil {
		return nil, err
	}
	sp := s.regs.Rsp
	if s.inside != 0 {
		s.frame = new(agent.RawFrame)
		if _, err := binary.Decode(p[sentFrame:sentStackSize], binary.LittleEndian, s.frame); err != nil {
			return nil, err
		}
		sp = s.frame.RSP
	}
	size := min(word(sentStackSize), uint64(len(p)-sentStack))
	s.stack = stackTop{sp, bytes.Clone(p[sentStack : sentStack+int(size)])}
	return s, nil
}

// learn compares the value that the code tells with the one that was read.
func (k *kernelWatches) learn(pc uint64, told toldValue, now uint64) error {
	switch n := k.tried[pc]; {
	case n < 0:
	case told.class == codeTellsNothing || told.value != now:
		k.tried[pc] = -1
	case n+1 < trials:
		k.tried[pc]++
	case n+1 == trials && len(k.tried) < mostKnownCode:
		k.tried[pc]++
		if err := k.code.Put(pc, uint64(told.class)); err != nil {
			return fmt.Errorf("replay: the known code at %#x: %w", pc, err)
		}
	}
	return nil
}

// registersOf reads a struct pt_regs.
func registersOf(p []byte) ptrace.Registers {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(p[sentRegisters+8*i:]) }
	return ptrace.Registers{
		R15: word(0), R14: word(1), R13: word(2), R12: word(3), Rbp: word(4), Rbx: word(5), R11: word(6), R10: word(7),
		R9: word(8), R8: word(9), Rax: word(10), Rcx: word(11), Rdx: word(12), Rsi: word(13), Rdi: word(14),
		Orig_rax: word(15), Rip: word(ptIP / 8), Cs: word(17), Eflags: word(18), Rsp: word(ptSP / 8), Ss: word(20),
	}
}

// stackTop is the part of a stack that was sent.
type stackTop struct {
	at   uint64
	data []byte
}

// ReadMemory implements image.Memory.
func (s stackTop) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	offset := uint64(addr) - s.at
	if offset >= uint64(len(s.data)) {
		return 0, fmt.Errorf("replay: the stack at %v was not sent", addr)
	}
	n := copy(p, s.data[offset:])
	if n < len(p) {
		return n, fmt.Errorf("replay: the stack at %v was not sent", addr+evidence.Addr(n))
	}
	return n, nil
}

// lostHits returns the number of accesses for which the ring had no room.
func (k *kernelWatches) lostHits() (uint64, error) {
	var n uint64
	if err := k.lost.Lookup(uint32(0), &n); err != nil {
		return 0, fmt.Errorf("replay: lost accesses: %w", err)
	}
	return n, nil
}
