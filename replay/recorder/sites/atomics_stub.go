package sites

import (
	"encoding/binary"
	"fmt"
	"io"
	"unsafe"

	"diagnose/agent"
	"diagnose/replay/ptrace"
)

// AtomicStubs is where the windows with atomic instructions of a process are executed.
type AtomicStubs struct {
	areas []Addresses
	// at has the program's address of each of its instructions there, noted how many were known.
	at    map[uint64]uint64
	noted uint32
}

// atomicsHead is the beginning of agent.RawAtomics.
type atomicsHead struct {
	Areas, Sites uint32
	Low, High    [agent.AtomicAreas]uint64
}

// readAreas reads where the stubs are, and how many instructions are noted. controlAt is the address of the process's control page.
func (s *AtomicStubs) readAreas(memory io.ReaderAt, controlAt uint64) (noted uint32, err error) {
	var word [8]byte
	if _, err := memory.ReadAt(word[:], int64(controlAt+uint64(unsafe.Offsetof(agent.RawControl{}.Atomics)))); err != nil {
		return 0, fmt.Errorf("its control page: %w", err)
	}
	if s.areas = nil; word == [8]byte{} {
		return 0, nil
	}
	var head atomicsHead
	raw := make([]byte, binary.Size(&head))
	if _, err := memory.ReadAt(raw, agent.EngineAtomics); err != nil {
		return 0, fmt.Errorf("its atomic instructions: %w", err)
	}
	if _, err := binary.Decode(raw, binary.LittleEndian, &head); err != nil {
		return 0, err
	}
	for i := range min(head.Areas, agent.AtomicAreas) {
		s.areas = append(s.areas, Addresses{head.Low[i], head.High[i]})
	}
	return min(head.Sites, agent.AtomicSites), nil
}

// Read reads what the process has now.
func (s *AtomicStubs) Read(memory io.ReaderAt, controlAt uint64) error {
	noted, err := s.readAreas(memory, controlAt)
	if err != nil || noted == s.noted {
		return err
	}
	list := make([]agent.RawAtomicSite, noted)
	raw := make([]byte, binary.Size(list))
	if _, err := memory.ReadAt(raw, int64(agent.EngineAtomics+uint64(unsafe.Offsetof(agent.RawAtomics{}.Site)))); err != nil {
		return fmt.Errorf("its atomic instructions: %w", err)
	}
	if _, err := binary.Decode(raw, binary.LittleEndian, list); err != nil {
		return err
	}
	s.at, s.noted = make(map[uint64]uint64, noted), noted
	for _, x := range list {
		s.at[x.Insn] = x.At
	}
	return nil
}

// Has reports whether a pc is in a stub.
func (s *AtomicStubs) Has(pc uint64) bool {
	for i := range s.areas {
		if pc >= s.areas[i].Start && pc < s.areas[i].End {
			return true
		}
	}
	return false
}

// ProgramAddress returns the program's address of the instruction at a pc of a stub; 0: it is the engine's own.
func (s *AtomicStubs) ProgramAddress(pc uint64) uint64 { return s.at[pc] }

// InAtomicStub reports whether a thread at a pc executes an instruction of the program, or the code
// around it, in the place of a window with atomic instructions. controlAt is the address of the process's control page.
func InAtomicStub(memory io.ReaderAt, controlAt, pc uint64) (bool, error) {
	var stubs AtomicStubs
	_, err := stubs.readAreas(memory, controlAt)
	return stubs.Has(pc), err
}

// AtAtomic moves the pc of a thread that failed at an instruction of a window with atomic instructions to the instruction's
// own address.
func AtAtomic(memory io.ReaderAt, controlAt uint64, tid int, regs *ptrace.Registers) error {
	in, err := InAtomicStub(memory, controlAt, regs.Rip)
	if err != nil || !in {
		return err
	}
	var stubs AtomicStubs
	if err := stubs.Read(memory, controlAt); err != nil {
		return err
	}
	at := stubs.ProgramAddress(regs.Rip)
	if at == 0 {
		return nil
	}
	regs.Rip, regs.Orig_rax = at, ^uint64(0)
	return ptrace.SetRegisters(tid, regs)
}
