package launch

import (
	"encoding/binary"
	"errors"
	"fmt"

	"diagnose/replay/ptrace"
)

// Types of the auxiliary vector, elf.h.
const (
	AuxNull       = 0
	auxIgnore     = 1
	auxRandom     = 25
	AuxExecFn     = 31
	auxSystemInfo = 33 // AT_SYSINFO_EHDR, where the vDSO is
)

// maxVector is the maximum number of a process's arguments and environment variables: the
// kernel accepts at most 6 MiB, and a string has at least a byte and a pointer.
const MaxVector = 6 << 20

// Normalise removes randomness from a process that was stopped at its exec, before its first
// instruction: it replaces its random bytes by the given ones, and hides the vDSO.
func Normalise(pid int, random [16]byte) error {
	memory, err := ptrace.OpenMemory(pid)
	if err != nil {
		return err
	}
	defer memory.Close()
	at, err := auxiliary(pid, memory)
	if err != nil {
		return err
	}
	for {
		var entry [16]byte
		if _, err := memory.ReadAt(entry[:], int64(at)); err != nil {
			return fmt.Errorf("record: auxiliary vector: %w", err)
		}
		kind, value := binary.LittleEndian.Uint64(entry[:]), binary.LittleEndian.Uint64(entry[8:])
		switch kind {
		case AuxNull:
			return nil
		case auxRandom:
			_, err = memory.WriteAt(random[:], int64(value))
		case auxSystemInfo:
			err = memory.SetWord(at, auxIgnore)
		}
		if err != nil {
			return err
		}
		at += uint64(len(entry))
	}
}

// auxiliary finds the vector on the stack as execve left it: the number of arguments, the
// arguments, NULL, the environment, NULL.
func auxiliary(pid int, memory *ptrace.Memory) (uint64, error) {
	regs, err := ptrace.GetRegisters(pid)
	if err != nil {
		return 0, err
	}
	count, err := memory.Word(regs.Rsp)
	if err != nil {
		return 0, err
	}
	if count > MaxVector {
		return 0, fmt.Errorf("record: a stack with %d arguments", count)
	}
	at := regs.Rsp + 8*(count+2)
	buffer := make([]byte, 4096)
	for read := 0; read < 8*MaxVector; {
		// It reads up to the end of a page, so that no read crosses the top of the stack.
		part := buffer[:4096-at%4096]
		if _, err := memory.ReadAt(part, int64(at)); err != nil {
			return 0, fmt.Errorf("record: environment on the stack: %w", err)
		}
		for i := 0; i+8 <= len(part); i += 8 {
			if binary.LittleEndian.Uint64(part[i:]) == 0 {
				return at + uint64(i) + 8, nil
			}
		}
		at += uint64(len(part))
		read += len(part)
	}
	return 0, errors.New("record: no end of the environment on the stack")
}
