// Package started reads what a process has when it starts: its environment, the memory of its
// dynamic linker, and the clock of its vDSO. A replay starts with the same.
package started

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"

	"diagnose/replay/launch"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
)

// Environ returns the environment that a process was started with, as the pointers on its
// stack have it. /proc/PID/environ is the memory into which the kernel copied the strings, and
// the dynamic linker writes there: until glibc 2.38 it splits GLIBC_TUNABLES with zeros and
// makes the pointer refer to a copy (elf/dl-tunables.c). A replay needs the whole variable.
func Environ(pid int) ([]record.Text, error) {
	stack, end, err := startStack(pid)
	if err != nil {
		return nil, err
	}
	memory, err := ptrace.OpenMemory(pid)
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	whole := make([]byte, end-stack)
	if _, err := memory.ReadAt(whole, int64(stack)); err != nil {
		return nil, fmt.Errorf("record: the environment of process %d: %w", pid, err)
	}
	if len(whole) < 8 || binary.LittleEndian.Uint64(whole) > launch.MaxVector {
		return nil, fmt.Errorf("record: process %d has no arguments on its stack", pid)
	}
	var list []record.Text
	for at := 8 * (binary.LittleEndian.Uint64(whole) + 2); at+8 <= uint64(len(whole)); at += 8 {
		p := binary.LittleEndian.Uint64(whole[at:])
		if p == 0 {
			return list, nil
		}
		var text []byte
		if p >= stack && p < end {
			text, _, _ = bytes.Cut(whole[p-stack:], []byte{0})
		} else if text, err = memory.String(p, longestString); err != nil {
			return nil, fmt.Errorf("record: the environment of process %d: %w", pid, err)
		}
		list = append(list, record.Text(text))
	}
	return nil, fmt.Errorf("record: the environment of process %d has no end", pid)
}

// startStack returns the address of the stack at the exec, and the end of the environment's
// strings above it: startstack and env_end of proc_pid_stat(5).
func startStack(pid int) (start, end uint64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("record: %w", err)
	}
	// The name, in parentheses, may contain spaces and parentheses. Field 3 follows.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const startField, endField = 28 - 3, 51 - 3
	if len(fields) > endField {
		start, err = strconv.ParseUint(string(fields[startField]), 10, 64)
		if err == nil {
			end, err = strconv.ParseUint(string(fields[endField]), 10, 64)
		}
	}
	const most = 16 << 20 // twice the kernel's limit of strings and pointers
	if err != nil || start == 0 || end <= start || end-start > most {
		return 0, 0, errors.Join(fmt.Errorf("record: /proc/%d/stat does not say where the environment is", pid), err)
	}
	return start, end, nil
}

// longestString is MAX_ARG_STRLEN of the kernel's binfmts.h.
const longestString = 32 * 4096
