package sites

import (
	"encoding/binary"
	"fmt"
	"io"
	"unsafe"

	"diagnose/agent"
	"diagnose/replay/ptrace"
)

// inAtomicStub reports whether a pc is where the atomic instructions of a process are executed.
func inAtomicStub(memory io.ReaderAt, pc uint64) (bool, error) {
	var head struct {
		Areas, Sites uint32
		Low, High    [agent.AtomicAreas]uint64
	}
	raw := make([]byte, binary.Size(&head))
	if _, err := memory.ReadAt(raw, agent.EngineAtomics); err != nil {
		return false, fmt.Errorf("its atomic instructions: %w", err)
	}
	if _, err := binary.Decode(raw, binary.LittleEndian, &head); err != nil {
		return false, err
	}
	for i := range min(head.Areas, agent.AtomicAreas) {
		if pc >= head.Low[i] && pc < head.High[i] {
			return true, nil
		}
	}
	return false, nil
}

// InAtomicStub reports whether a thread at a pc executes an instruction of the program, or the code
// around it, in the place of a window with atomic instructions. controlAt is the address of the process's control page.
func InAtomicStub(memory io.ReaderAt, controlAt, pc uint64) (bool, error) {
	var word [8]byte
	if _, err := memory.ReadAt(word[:], int64(controlAt+uint64(unsafe.Offsetof(agent.RawControl{}.Atomics)))); err != nil {
		return false, fmt.Errorf("its control page: %w", err)
	}
	if word == [8]byte{} {
		return false, nil
	}
	return inAtomicStub(memory, pc)
}

// AtAtomic moves the pc of a thread that failed at an instruction of a window with atomic instructions to the instruction's
// own address.
func AtAtomic(memory io.ReaderAt, controlAt uint64, tid int, regs *ptrace.Registers) error {
	in, err := InAtomicStub(memory, controlAt, regs.Rip)
	if err != nil || !in {
		return err
	}
	raw := make([]byte, unsafe.Sizeof(agent.RawAtomics{}.Site))
	if _, err := memory.ReadAt(raw, int64(agent.EngineAtomics+uint64(unsafe.Offsetof(agent.RawAtomics{}.Site)))); err != nil {
		return fmt.Errorf("its atomic instructions: %w", err)
	}
	const size = int(unsafe.Sizeof(agent.RawAtomicSite{}))
	for ; len(raw) >= size; raw = raw[size:] {
		insn, at := binary.LittleEndian.Uint64(raw), binary.LittleEndian.Uint64(raw[8:])
		if insn == 0 {
			return nil
		}
		if insn == regs.Rip {
			regs.Rip, regs.Orig_rax = at, ^uint64(0)
			return ptrace.SetRegisters(tid, regs)
		}
	}
	return nil
}
