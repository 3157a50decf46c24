package verdict

import (
	"testing"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// The last call that took the memory away is told, unless it was mapped again.
func TestMappingLife(t *testing.T) {
	const at = evidence.Addr(0x12000)
	made := eventlog.MemoryChange{Call: "mmap", Addr: 0x10000, Size: 0x4000}
	gone := eventlog.MemoryChange{Call: "munmap", Addr: 0x10000, Size: 0x4000, Gone: true}
	attached := eventlog.MemoryChange{Call: "shmat", Addr: 0x10000, Size: 0x4000}
	detached := eventlog.MemoryChange{Call: "shmdt", Addr: 0x10000, Gone: true, Whole: true}
	for _, c := range []struct {
		what    string
		changes []eventlog.MemoryChange
		call    string
		ordinal uint64
	}{
		{"nothing", nil, "", 0},
		{"mapped", []eventlog.MemoryChange{made}, "", 0},
		{"unmapped", []eventlog.MemoryChange{made, gone}, "munmap", 2},
		{"unmapped twice", []eventlog.MemoryChange{made, gone, gone}, "munmap", 2},
		{"mapped again", []eventlog.MemoryChange{made, gone, made}, "", 0},
		{"unmapped and never mapped", []eventlog.MemoryChange{gone}, "", 0},
		{"a part elsewhere", []eventlog.MemoryChange{made, {Call: "munmap", Addr: 0x10000, Size: 0x2000, Gone: true}}, "", 0},
		{"a part there", []eventlog.MemoryChange{made, {Call: "munmap", Addr: 0x12000, Size: 0x1000, Gone: true}}, "munmap", 2},
		{"detached", []eventlog.MemoryChange{attached, detached}, "shmdt", 2},
		{"other memory detached", []eventlog.MemoryChange{attached, {Call: "shmdt", Addr: 0x20000, Gone: true, Whole: true}}, "", 0},
		{"grown over it", []eventlog.MemoryChange{{Call: "mmap", Addr: 0x10000, Size: 0x1000}, {Call: "mremap", Addr: 0x10000, Size: 0x1000, Grown: 0x4000}, gone}, "munmap", 3},
		{"a size that wraps", []eventlog.MemoryChange{{Call: "mmap", Addr: 0x10000, Size: ^uint64(0)}, gone}, "", 0},
	} {
		life := mappingLife{addr: at}
		for i := range c.changes {
			life.note(&eventlog.Event{Thread: 1, Ordinal: uint64(i) + 1}, &c.changes[i])
		}
		if life.call != c.call || life.call != "" && life.ordinal != c.ordinal {
			t.Errorf("%s: %+v", c.what, life)
		}
	}
}
