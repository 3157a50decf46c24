package breakpoint

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
	"diagnose/replay/tracee/traceetest"
)

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
	text := traceetest.Pages(t, 0, tracee.PageSize, unix.PROT_READ|unix.PROT_EXEC)
	frame := traceetest.Pages(t, 0, tracee.PageSize, unix.PROT_READ|unix.PROT_WRITE)
	slot := traceetest.Pages(t, agent.RThreadAddress(self), tracee.PageSize, unix.PROT_READ|unix.PROT_WRITE)
	// add %rax, %rdx; cmp %rdx, %rcx, over and over
	write(text, bytes.Repeat([]byte{0x48, 0x01, 0xc2, 0x48, 0x39, 0xd1}, tracee.PageSize/6))
	pc := text + 300*6
	leaves, returns := pc+3, pc+6
	write(frame, agent.RawFrame{RIP: leaves})
	write(slot, agent.RawRThread{Inside: frame})

	stopped := &tracee.Thread{Index: self}
	b := &Breakpoints{
		process:  &tracee.Process{PID: os.Getpid(), Memory: memory, Threads: map[int]*tracee.Thread{self: stopped}},
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
