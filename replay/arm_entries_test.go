package replay

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/patch"
	"diagnose/replay/tracee"
)

// ownPages maps pages of the test's process; at 0: at any free address.
func ownPages(t *testing.T, at, size uint64, protection int) uint64 {
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

// TestEntriesOfThreads uses the test's own process as the replayed one. No window may hide the
// addresses where the thread itself leaves the engine and where another thread returns from its
// handler.
func TestEntriesOfThreads(t *testing.T) {
	memory, err := tracee.OpenMemory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	write := func(at uint64, v any) {
		t.Helper()
		b, err := binary.Append(nil, binary.LittleEndian, v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := memory.WriteAt(b, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	const self, other = 1, 2
	text := ownPages(t, 0, tracee.PageSize, unix.PROT_READ|unix.PROT_EXEC)
	frame := ownPages(t, 0, tracee.PageSize, unix.PROT_READ|unix.PROT_WRITE)
	slot := ownPages(t, agent.RThreadAddress(self), tracee.PageSize, unix.PROT_READ|unix.PROT_WRITE)
	// add %rax, %rdx; cmp %rdx, %rcx, over and over
	write(text, bytes.Repeat([]byte{0x48, 0x01, 0xc2, 0x48, 0x39, 0xd1}, tracee.PageSize/6))
	pc := text + 300*6
	leaves, returns := pc+3, pc+6
	write(frame, agent.RawFrame{RIP: leaves})
	write(slot, agent.RawRThread{Inside: frame})

	stopped := &tracee.Thread{Index: self}
	b := &breakpoints{
		c:        &controller{Process: &tracee.Process{PID: os.Getpid(), Memory: memory, Threads: map[int]*tracee.Thread{self: stopped}}},
		placedAt: map[placedPC]bool{{other, returns}: true},
	}
	entries, code, base, known := b.entries(stopped, pc)
	if !known {
		t.Fatal("the entries are not known")
	}
	for _, want := range []uint64{leaves, returns} {
		if !slices.Contains(entries, want) {
			t.Errorf("%#x is not among %#x", want, entries)
		}
	}
	if w := patch.FindWindow(code, base, pc, entries); w == nil || w.Hides(leaves) || w.Hides(returns) {
		t.Errorf("the window %+v hides %#x or %#x", w, leaves, returns)
	}
}
