package watchpoint

import (
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf/asm"

	"diagnose/agent"
	"diagnose/replay/tracee"
)

// Offsets in the record that the kernel's program sends for each access. It consists of words of 8
// bytes.
const (
	sentRegisters = 0 // struct pt_regs
	sentAddress   = sentRegisters + ptRegs
	sentThread    = sentAddress + 8 // the kernel's id
	sentWords     = sentThread + 8
	sentMissing   = sentWords + 8*tracee.DebugRegisters   // not 0 if the word could not be read
	sentTurns     = sentMissing + 8*tracee.DebugRegisters // turns to consumed of struct dg_control
	sentHolder    = sentTurns + int(holderOffset-turnsOffset)
	sentConsumed  = sentTurns + int(consumedOffset-turnsOffset)
	sentSlot      = sentConsumed + 8 // the beginning of struct dg_rthread
	sentPointer   = sentSlot + int(threadBytes)
	sentFrame     = sentPointer + 8
	sentStackSize = sentFrame + frameBytes
	sentHeld      = sentStackSize + 8
	sentTop       = sentHeld + 8 // the program's stack pointer
	sentStack     = sentTop + 8
)

const (
	ptRegs     = 21 * 8 // sizeof(struct pt_regs)
	frameBytes = int(unsafe.Sizeof(agent.RawFrame{}))
	// leastStack is how much of the stack is sent for code of the program itself. mostStack is
	// sent for other code, to reach from a function of libc to its caller, and middleStack if that
	// much is not readable.
	leastStack, middleStack, mostStack = 64, 1024, 4096
	// perfAddress is the offset of addr in struct bpf_perf_event_data.
	perfAddress = ptRegs + 8
	ringQuiet   = 1 // BPF_RB_NO_WAKEUP
)

// Offsets in struct pt_regs.
const (
	ptIP = 16 * 8
	ptSP = 19 * 8
)

// senderMaps are the maps that the kernel's program shares with the tool, by their descriptors:
// the ring; a count of the records that did not fit into it; the codeTells... class of the code
// before a pc; the count of events at the last access to each word.
type senderMaps struct{ ring, lost, code, last int }

// What the code before a pc tells about the value of the word that it accesses.
const (
	codeTellsNothing = iota
	codeTellsAll
	codeTellsChange
)

// sender is the program that the kernel runs at each access. It sends the state of the thread, or
// counts the record as lost if the ring has no room.
type sender struct {
	asm.Instructions
	labels int
}

const (
	labelLost  = "lost"
	labelEnd   = "end"
	labelOther = "other"
)

// newSender builds the program. own is the code of the program's executable.
func newSender(watches []tracee.Watch, locks []LockWord, own tracee.Span, m senderMaps) asm.Instructions {
	s := &sender{}
	s.appendCode(
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R1, asm.R6, ptIP, asm.DWord),
		asm.LoadImm(asm.R2, int64(own.Start), asm.DWord),
		asm.JLT.Reg(asm.R1, asm.R2, labelOther),
		asm.LoadImm(asm.R2, int64(own.End), asm.DWord),
		asm.JGE.Reg(asm.R1, asm.R2, labelOther),
	)
	s.send(watches, locks, m, leastStack)
	s.appendCode(asm.Mov.Imm(asm.R0, 0).WithSymbol(labelOther))
	s.send(watches, locks, m, mostStack, middleStack, leastStack)
	s.appendCode(
		asm.StoreImm(asm.RFP, -4, 0, asm.Word).WithSymbol(labelLost),
		asm.LoadMapPtr(asm.R1, m.lost),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, labelEnd),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(labelEnd),
		asm.Return(),
	)
	return s.Instructions
}

// send sends a record with the largest of the given sizes of stack that is readable, the largest
// first.
func (s *sender) send(watches []tracee.Watch, locks []LockWord, m senderMaps, stack ...int) {
	s.appendCode(
		asm.LoadMapPtr(asm.R1, m.ring),
		asm.Mov.Imm(asm.R2, int32(sentStack+stack[0])),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnRingbufReserve.Call(),
		asm.JEq.Imm(asm.R0, 0, labelLost),
		asm.Mov.Reg(asm.R7, asm.R0),
	)
	for at := 0; at < ptRegs; at += 8 {
		s.appendCode(asm.LoadMem(asm.R1, asm.R6, int16(at), asm.DWord), asm.StoreMem(asm.R7, int16(sentRegisters+at), asm.R1, asm.DWord))
	}
	s.appendCode(
		asm.LoadMem(asm.R1, asm.R6, perfAddress, asm.DWord),
		asm.StoreMem(asm.R7, int16(sentAddress), asm.R1, asm.DWord),
		asm.FnGetCurrentPidTgid.Call(),
		asm.LSh.Imm(asm.R0, 32),
		asm.RSh.Imm(asm.R0, 32),
		asm.StoreMem(asm.R7, int16(sentThread), asm.R0, asm.DWord),
	)
	s.engine()
	s.words(watches, m)
	s.stack(stack)
	s.locks(locks)
	s.appendCode(
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.Mov.Imm(asm.R2, ringQuiet),
		asm.FnRingbufSubmit.Call(),
		asm.Ja.Label(labelEnd),
	)
}

func (s *sender) appendCode(list ...asm.Instruction) {
	s.Instructions = append(s.Instructions, list...)
}

func (s *sender) label() string {
	s.labels++
	return fmt.Sprintf("l%d", s.labels)
}

// read copies memory of the process, whose address is in R3, to an offset of the record. If that
// fails, R0 is not 0 and the record has zeros.
func (s *sender) read(offset, size int) {
	s.appendCode(
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.Add.Imm(asm.R1, int32(offset)),
		asm.Mov.Imm(asm.R2, int32(size)),
		asm.FnProbeReadUser.Call(),
	)
}

// words reads the accessed word. Reading a word that is watched for reads traps once more, in the
// kernel, which costs as much as eight accesses. So the word is not read if the tool knows the
// code well enough to tell the value without reading.
func (s *sender) words(watches []tracee.Watch, m senderMaps) {
	for i := range tracee.DebugRegisters {
		s.appendCode(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.R7, int16(sentWords+8*i), asm.R1, asm.DWord),
			asm.Mov.Imm(asm.R1, 1), asm.StoreMem(asm.R7, int16(sentMissing+8*i), asm.R1, asm.DWord))
	}
	for i, w := range watches {
		other := s.label()
		s.appendCode(
			asm.LoadImm(asm.R1, int64(w.Addr), asm.DWord),
			asm.LoadMem(asm.R2, asm.R6, perfAddress, asm.DWord),
			asm.JNE.Reg(asm.R1, asm.R2, other),
		)
		if !w.Writes {
			s.unlessKnown(i, m, other)
		}
		s.appendCode(asm.LoadImm(asm.R3, int64(w.Addr), asm.DWord))
		s.read(sentWords+8*i, w.Size)
		s.appendCode(asm.StoreMem(asm.R7, int16(sentMissing+8*i), asm.R0, asm.DWord),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(other))
	}
}

// unlessKnown jumps to a label if the value follows from the registers (codeTellsAll), or from
// them and the value before (codeTellsChange). In the second case the kernel may have changed that
// value since the last event.
func (s *sender) unlessKnown(watch int, m senderMaps, known string) {
	read, all := s.label(), s.label()
	s.appendCode(
		asm.LoadMem(asm.R1, asm.R6, ptIP, asm.DWord),
		asm.StoreMem(asm.RFP, -8, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, int32(watch)),
		asm.StoreMem(asm.RFP, -12, asm.R1, asm.Word),
		// R8: the codeTells... class of the code.
		asm.Mov.Imm(asm.R8, codeTellsNothing),
		asm.LoadMapPtr(asm.R1, m.code),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -8),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, all),
		asm.LoadMem(asm.R8, asm.R0, 0, asm.DWord),
		// R0: the count of events at the last access.
		asm.LoadMapPtr(asm.R1, m.last).WithSymbol(all),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -12),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, read),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.LoadMem(asm.R2, asm.R7, int16(sentConsumed), asm.DWord),
		asm.Add.Imm(asm.R2, 1), // 0 means never
		asm.StoreMem(asm.R0, 0, asm.R2, asm.DWord),
		asm.JEq.Imm(asm.R8, codeTellsAll, known),
		asm.JNE.Imm(asm.R8, codeTellsChange, read),
		asm.JEq.Reg(asm.R1, asm.R2, known),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(read),
	)
}

// engine adds the engine's state: the thread that has the right to run and, if it is this thread,
// its position and whether it is in the engine.
func (s *sender) engine() {
	var thread agent.RawRThread
	own, outside := s.label(), s.label()
	s.appendCode(asm.LoadImm(asm.R3, int64(agent.EngineControl+turnsOffset), asm.DWord))
	s.read(sentTurns, int(turnBytes))
	s.appendCode(
		asm.LoadMem(asm.R8, asm.R7, int16(sentHolder), asm.Word),
		asm.LSh.Imm(asm.R8, 16), // times DG_THREAD_SLOT
		asm.LoadImm(asm.R1, int64(agent.EngineThreads), asm.DWord),
		asm.Add.Reg(asm.R8, asm.R1),
		asm.Mov.Reg(asm.R3, asm.R8),
	)
	s.read(sentSlot, int(threadBytes))
	s.appendCode(asm.Mov.Reg(asm.R3, asm.R8), asm.Add.Imm(asm.R3, int32(unsafe.Offsetof(thread.ThreadPointer))))
	s.read(sentPointer, 8)
	inside := int16(sentSlot + int(unsafe.Offsetof(thread.Inside)))
	s.appendCode(
		asm.LoadMem(asm.R1, asm.R7, int16(sentSlot+int(unsafe.Offsetof(thread.RealTID))), asm.Word),
		asm.LoadMem(asm.R2, asm.R7, int16(sentThread), asm.Word),
		asm.JEq.Reg(asm.R1, asm.R2, own),
		asm.Mov.Imm(asm.R5, 0), asm.StoreMem(asm.R7, inside, asm.R5, asm.DWord),
		asm.LoadMem(asm.R3, asm.R7, inside, asm.DWord).WithSymbol(own),
		asm.LoadMem(asm.R1, asm.R7, int16(sentRegisters+ptSP), asm.DWord),
		asm.StoreMem(asm.R7, int16(sentTop), asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R5, 0), asm.StoreMem(asm.R7, int16(sentFrame), asm.R5, asm.DWord),
		asm.JEq.Imm(asm.R3, 0, outside),
	)
	s.read(sentFrame, frameBytes)
	s.appendCode(asm.LoadMem(asm.R1, asm.R7, int16(sentFrame+int(unsafe.Offsetof(agent.RawFrame{}.RSP))), asm.DWord),
		asm.StoreMem(asm.R7, int16(sentTop), asm.R1, asm.DWord))
	s.appendCode(asm.Mov.Imm(asm.R0, 0).WithSymbol(outside))
}

// stack adds the top of the program's stack.
func (s *sender) stack(sizes []int) {
	have := s.label()
	for _, size := range sizes {
		s.appendCode(
			asm.Mov.Imm(asm.R5, int32(size)),
			asm.StoreMem(asm.R7, int16(sentStackSize), asm.R5, asm.DWord),
			asm.LoadMem(asm.R3, asm.R7, int16(sentTop), asm.DWord),
		)
		s.read(sentStack, size)
		s.appendCode(asm.JEq.Imm(asm.R0, 0, have))
	}
	s.appendCode(
		asm.Mov.Imm(asm.R5, 0),
		asm.StoreMem(asm.R7, int16(sentStackSize), asm.R5, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(have),
	)
}

// locks computes the bits of the locks that the thread holds, in R9.
func (s *sender) locks(locks []LockWord) {
	s.appendCode(
		asm.LoadMem(asm.R8, asm.R7, int16(sentSlot+int(unsafe.Offsetof(agent.RawRThread{}.TID))), asm.Word),
		asm.Mov.Imm(asm.R9, 0),
	)
	for i, l := range locks {
		next := s.label()
		s.appendCode(
			asm.Mov.Imm(asm.R5, 0), asm.StoreMem(asm.RFP, -8, asm.R5, asm.DWord),
			asm.Mov.Reg(asm.R1, asm.RFP),
			asm.Add.Imm(asm.R1, -8),
			asm.Mov.Imm(asm.R2, lockBytes),
			asm.LoadImm(asm.R3, int64(l.Addr), asm.DWord),
			asm.FnProbeReadUser.Call(),
			asm.LoadMem(asm.R1, asm.RFP, -8, asm.Word),
			asm.JEq.Imm(asm.R1, 0, next),
		)
		if l.Owner {
			s.appendCode(asm.JNE.Reg(asm.R1, asm.R8, next))
		}
		s.appendCode(
			asm.LoadImm(asm.R2, 1<<i, asm.DWord),
			asm.Or.Reg(asm.R9, asm.R2),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(next),
		)
	}
	s.appendCode(asm.StoreMem(asm.R7, int16(sentHeld), asm.R9, asm.DWord))
}
