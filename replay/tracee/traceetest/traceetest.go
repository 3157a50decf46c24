// Package traceetest uses the process of a test as the replayed one.
package traceetest

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/tracee"
)

// Pages maps pages of the test's process; at 0: at any free address.
func Pages(t *testing.T, at, size uint64, protection int) uint64 {
	t.Helper()
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	if at != 0 {
		flags |= unix.MAP_FIXED_NOREPLACE
	}
	got, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(at), uintptr(size), uintptr(protection), uintptr(flags), ^uintptr(0), 0)
	if errno != 0 {
		t.Fatalf("mmap at %#x: %v", at, errno)
	}
	t.Cleanup(func() { unix.Syscall(unix.SYS_MUNMAP, got, uintptr(size), 0) })
	return uint64(got)
}

// Process is the test's process as the replayed one, with a control in its memory.
func Process(t *testing.T) *tracee.Process {
	t.Helper()
	memory, err := tracee.OpenMemory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	size := (uint64(unsafe.Sizeof(agent.RawControl{})) + tracee.PageSize - 1) / tracee.PageSize * tracee.PageSize
	return &tracee.Process{PID: os.Getpid(), Memory: memory, Threads: map[int]*tracee.Thread{},
		Control: Pages(t, 0, size, unix.PROT_READ|unix.PROT_WRITE)}
}
