package corefile

import (
	"os"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
)

func TestTouched(t *testing.T) {
	const pages = 4
	memory, err := unix.Mmap(-1, 0, pages*corePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	// A huge page would be touched as a whole.
	if err := unix.Madvise(memory, unix.MADV_NOHUGEPAGE); err != nil {
		t.Log(err) // a kernel without them
	}
	const written = 2
	memory[written*corePage] = 1
	list, err := Touched(os.Getpid(), "")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(list, func(a, b Range) int { return int(int64(a.Start) - int64(b.Start)) }) {
		t.Errorf("not in order: %v", list)
	}
	at := evidence.Addr(uintptr(unsafe.Pointer(&memory[0])))
	for page := range evidence.Addr(pages) {
		known := slices.ContainsFunc(list, func(r Range) bool { return r.Start <= at+page*corePage && at+page*corePage < r.End })
		if known != (page == written) {
			t.Errorf("page %d is touched: %v", page, known)
		}
	}
	if _, err := Touched(-1, ""); err == nil {
		t.Error("no process has memory")
	}
}

func TestPartOf(t *testing.T) {
	for addr, want := range map[evidence.Addr]Part{0x404040: PartProgram, 0x5555555780a0: PartProgram, agent.Base + agent.OffObjects: PartHeap,
		agent.EngineStacks: PartStack, agent.EngineEnd - 8: PartStack, 0x7ffff7dd5000: PartOther, 0x7fffffffe3a8: PartOther} {
		if got := PartOf(addr); got != want {
			t.Errorf("%v is of part %d, not %d", addr, got, want)
		}
	}
}
