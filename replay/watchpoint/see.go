package watchpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// sighting is an access as a back end saw it: the state of a thread right after an instruction
// that accessed watched words.
type sighting struct {
	watches uint8 // bit per watch
	// index is the thread's number in the recording; position is control.consumed; ordinal and
	// inside are from its struct dg_rthread.
	index                     uint32
	position, ordinal, inside uint64
	// turn is control.turns; 0 if the thread does not have the right to run.
	turn uint64
	tid  uint32 // the recorded one
	held uint64
	regs ptrace.Registers
	// frame has the registers with which the thread entered the engine; nil outside of it.
	frame *agent.RawFrame
	words [tracee.DebugRegisters]uint64
	// valid: the word could be read; bit per watch.
	valid uint8
	// thread is the kernel's id, set by back ends that do not stop it.
	thread int
	// stack reads the available part of the stack.
	stack image.Memory
	// made is the access, if the back end knows it; nil: it follows from the registers.
	made *made
}

// made is an instruction with the kinds of its accesses, by watch.
type made struct {
	inst  x86.Inst
	kinds [tracee.DebugRegisters]evidence.AccessCode
}

// initial reads a word before any access was seen. Memory that is not mapped yet is read at its
// first access.
func (tr *Tracing) initial(watch int) {
	if value, err := tr.word(watch); err == nil {
		tr.known[watch], tr.read[watch] = value, true
	}
}

func (tr *Tracing) word(watch int) (uint64, error) {
	var p [8]byte
	w := &tr.watches[watch]
	_, err := tr.process.Memory.ReadAt(p[:w.Size], int64(w.Addr))
	return binary.LittleEndian.Uint64(p[:]), err
}

// setWord writes the value of a watched word.
func (tr *Tracing) setWord(watch int, value uint64) error {
	var p [8]byte
	binary.LittleEndian.PutUint64(p[:], value)
	w := &tr.watches[watch]
	_, err := tr.process.Memory.WriteAt(p[:w.Size], int64(w.Addr))
	return err
}

// see reads the state of a thread that a watch stopped.
func (tr *Tracing) see(t *tracee.Thread, regs *ptrace.Registers) (*sighting, error) {
	s := &sighting{regs: *regs, stack: tr.process, index: t.Index}
	if tr.process.Control == 0 {
		s.index = 1 // before the engine has started there is one thread, without an event
	} else if err := tr.process.Identify(t); errors.Is(err, tracee.ErrNoThread) {
		if err := tr.newcomer(s, t.TID); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	s.index = max(s.index, t.Index)
	if err := tr.readWords(s, t.Index != 0); err != nil {
		return nil, err
	}
	if s.inside == 0 {
		return s, nil
	}
	f, err := tracee.ReadStruct[agent.RawFrame](tr.process.Memory, s.inside)
	if err != nil {
		return nil, err
	}
	s.frame = f
	return s, nil
}

// Offsets in the engine's structures of the fields that are read.
const (
	turnsOffset    = uint64(unsafe.Offsetof(agent.RawControl{}.Turns))
	holderOffset   = uint64(unsafe.Offsetof(agent.RawControl{}.Holder))
	consumedOffset = uint64(unsafe.Offsetof(agent.RawControl{}.Consumed))
	// turnBytes are those from turns to consumed.
	turnBytes   = consumedOffset + 8 - turnsOffset
	threadBytes = uint64(unsafe.Offsetof(agent.RawRThread{}.Ordinal)) + 8
	lockBytes   = 4
)

// readWords reads the watched words, the locks, and the position of the replay.
func (tr *Tracing) readWords(s *sighting, known bool) error {
	pieces := tr.gathered.pieces[:0]
	watches := tr.watches
	if tr.probes != nil {
		watches = nil // it reads those of an access
	}
	for i, w := range watches {
		pieces = append(pieces, wanted{addr: uint64(w.Addr), size: uint64(w.Size), into: tr.buffer[8*i:]})
	}
	locks := tr.buffer[8*tracee.DebugRegisters:]
	for i, l := range tr.asked.Locks {
		pieces = append(pieces, wanted{addr: uint64(l.Addr), size: lockBytes, into: locks[lockBytes*i:]})
	}
	var control [turnBytes]byte
	var slot [threadBytes]byte
	if known {
		pieces = append(pieces, wanted{addr: tr.process.Control + turnsOffset, size: turnBytes, into: control[:]},
			wanted{addr: agent.RThreadAddress(s.index), size: threadBytes, into: slot[:]})
	}
	tr.gathered.pieces = pieces
	have := tr.gather(pieces)
	if known {
		if n := len(pieces); !have[n-1] || !have[n-2] {
			return fmt.Errorf("replay: what the engine knows of thread %d cannot be read", s.index)
		}
		var r agent.RawRThread
		s.tid = binary.LittleEndian.Uint32(slot[unsafe.Offsetof(r.TID):])
		s.inside = binary.LittleEndian.Uint64(slot[unsafe.Offsetof(r.Inside):])
		s.ordinal = binary.LittleEndian.Uint64(slot[unsafe.Offsetof(r.Ordinal):])
		s.position = binary.LittleEndian.Uint64(control[consumedOffset-turnsOffset:])
		if binary.LittleEndian.Uint32(control[holderOffset-turnsOffset:]) == s.index {
			s.turn = binary.LittleEndian.Uint64(control[:])
		}
	}
	for i, w := range watches {
		if have[i] {
			s.valid |= 1 << i
			s.words[i] = binary.LittleEndian.Uint64(tr.buffer[8*i:]) & (^uint64(0) >> (64 - 8*w.Size))
		}
	}
	for i, l := range tr.asked.Locks {
		word := binary.LittleEndian.Uint32(locks[lockBytes*i:])
		if have[len(watches)+i] && word != 0 && (!l.Owner || word == s.tid) {
			s.held |= 1 << i
		}
	}
	return nil
}

// gathered has the buffers of gather, kept for the next call.
type gathered struct {
	pieces []wanted
	local  []unix.Iovec
	remote []unix.RemoteIovec
	have   []bool
}

// wanted is a piece of the process's memory to be read.
type wanted struct {
	addr, size uint64
	into       []byte
}

// gather reads pieces, in one call if all are readable. have says which were read.
func (tr *Tracing) gather(pieces []wanted) (have []bool) {
	g := &tr.gathered
	g.local, g.remote, g.have = g.local[:0], g.remote[:0], g.have[:0]
	total := 0
	for _, p := range pieces {
		g.local = append(g.local, unix.Iovec{Base: &p.into[0], Len: p.size})
		g.remote = append(g.remote, unix.RemoteIovec{Base: uintptr(p.addr), Len: int(p.size)})
		g.have = append(g.have, true)
		total += int(p.size)
	}
	have = g.have
	if n, err := unix.ProcessVMReadv(tr.process.PID, g.local, g.remote, 0); err == nil && n == total {
		return have
	}
	for i, p := range pieces {
		_, err := tr.process.Memory.ReadAt(p.into[:p.size], int64(p.addr))
		have[i] = err == nil
	}
	return have
}

// newcomer handles a thread whose id the engine does not know yet: the main thread while the
// engine starts, or a thread before its first event, which is found by its thread pointer. Any
// other is thread 0.
func (tr *Tracing) newcomer(s *sighting, tid int) error {
	control, err := tr.process.ReadControl()
	if err != nil {
		return err
	}
	s.position = control.Consumed
	if tid == tr.process.PID && s.position == 0 {
		s.index = 1
		return nil
	}
	for i := min(control.Threads, agent.RThreads-1); i > 0; i-- {
		if r, err := tr.process.ReadThread(i); err == nil && r.State == agent.RStarting && r.ThreadPointer == s.regs.Fs_base {
			s.index = i
			return nil
		}
	}
	return nil
}

// identify finds the number of a thread that does not have the right to run: the only thread
// before the engine has started, or one before its first event or after its last.
func (tr *Tracing) identify(s *sighting) error {
	if s.held = 0; s.position == 0 && s.thread == tr.process.PID {
		s.index = 1
		return nil
	}
	if s.index = tr.indices[s.thread]; s.index != 0 {
		r, err := tr.process.ReadThread(s.index)
		if err == nil {
			s.ordinal, s.tid = r.Ordinal, r.TID
		}
		return err
	}
	t := tr.process.Threads[s.thread]
	if t == nil {
		return fmt.Errorf("replay: thread %d accessed a watched word and is not known", s.thread)
	}
	if err := tr.process.Identify(t); err == nil {
		s.index = t.Index
		return nil
	} else if !errors.Is(err, tracee.ErrNoThread) {
		return err
	}
	return tr.newcomer(s, s.thread)
}

// mapped returns a word's value before its first access: memory that has appeared since the last
// look is zero, unless it is mapped from a file.
func (tr *Tracing) mapped(watch int, now uint64) uint64 {
	maps, err := tracee.ReadMaps(tr.process.PID)
	if err != nil {
		return now
	}
	m := maps.Containing(uint64(tr.watches[watch].Addr))
	if m == nil {
		return now
	}
	if !strings.HasPrefix(m.Path, "/") {
		return 0
	}
	f, err := os.Open(m.Path)
	if err != nil {
		return now
	}
	defer f.Close()
	var p [8]byte
	w := &tr.watches[watch]
	if _, err := f.ReadAt(p[:w.Size], int64(uint64(w.Addr)-m.Start+m.Offset)); err != nil && err != io.EOF {
		return now
	}
	return binary.LittleEndian.Uint64(p[:])
}
