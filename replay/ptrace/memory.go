package ptrace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Memory is a traced process's memory; offsets are addresses. Writes also reach pages that the
// process itself may not write to. After an exec it must be opened again.
type Memory struct{ file *os.File }

// OpenMemory opens the memory of the process that a thread belongs to.
func OpenMemory(tid int) (*Memory, error) {
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", tid), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("ptrace: memory: %w", err)
	}
	return &Memory{f}, nil
}

// Close closes the memory.
func (m *Memory) Close() error { return m.file.Close() }

// ended returns ESRCH for the end of the file, which is what the kernel reports of a process that has ended, or executes another program
// (mem_rw of fs/proc/base.c).
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return unix.ESRCH
	}
	return err
}

// ReadAt reads len(p) bytes at an address, or fails: with ESRCH if the process has ended.
func (m *Memory) ReadAt(p []byte, at int64) (int, error) {
	n, err := m.file.ReadAt(p, at)
	if err != nil {
		return n, fmt.Errorf("ptrace: read of %d bytes at %#x: %w", len(p), uint64(at), ended(err))
	}
	return n, nil
}

// WriteAt writes len(p) bytes at an address, or fails as ReadAt does.
func (m *Memory) WriteAt(p []byte, at int64) (int, error) {
	n, err := m.file.WriteAt(p, at)
	if err != nil {
		return n, fmt.Errorf("ptrace: write of %d bytes at %#x: %w", len(p), uint64(at), ended(err))
	}
	return n, nil
}

// Word reads 8 bytes.
func (m *Memory) Word(at uint64) (uint64, error) {
	var p [8]byte
	_, err := m.ReadAt(p[:], int64(at))
	return binary.LittleEndian.Uint64(p[:]), err
}

// String reads a string up to its zero byte, which must be one of the first most bytes.
func (m *Memory) String(at uint64, most int) ([]byte, error) {
	var text []byte
	for len(text) < most {
		part := make([]byte, 4096-at%4096) // not beyond the page, which may be the last
		if _, err := m.ReadAt(part, int64(at)); err != nil {
			return nil, err
		}
		if end := bytes.IndexByte(part, 0); end >= 0 && len(text)+end < most {
			return append(text, part[:end]...), nil
		}
		text, at = append(text, part...), at+uint64(len(part))
	}
	return nil, fmt.Errorf("ptrace: the string at %#x has no end within %d bytes", at-uint64(len(text)), most)
}

// SetWord writes 8 bytes.
func (m *Memory) SetWord(at, value uint64) error {
	_, err := m.WriteAt(binary.LittleEndian.AppendUint64(nil, value), int64(at))
	return err
}
