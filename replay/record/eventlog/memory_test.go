package eventlog

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMemoryChanges(t *testing.T) {
	attached := Mapped{Data: NotKept, Size: 5000, Path: "System V shared memory"}
	for _, c := range []struct {
		what string
		e    Event
		want []MemoryChange
	}{
		{"mmap", Event{Object: unix.SYS_MMAP, Args: []uint64{0, 100, 3, 34, 0, 0}, Result: 0x10000},
			[]MemoryChange{{Call: "mmap", Addr: 0x10000, Size: 0x1000}}},
		{"a refused mmap", Event{Object: unix.SYS_MMAP, Args: []uint64{0, 100, 3, 34, 0, 0}, Result: -12}, nil},
		{"munmap", Event{Object: unix.SYS_MUNMAP, Args: []uint64{0x10000, 0x1001}},
			[]MemoryChange{{Call: "munmap", Addr: 0x10000, Size: 0x2000, Gone: true}}},
		{"mremap to another place", Event{Object: unix.SYS_MREMAP, Args: []uint64{0x10000, 0x1000, 0x3000, 1, 0}, Result: 0x50000},
			[]MemoryChange{{Call: "mremap", Addr: 0x10000, Size: 0x1000, Gone: true},
				{Call: "mremap", Addr: 0x50000, Size: 0x3000, From: 0x10000, Kept: 0x1000}}},
		{"mremap in its place", Event{Object: unix.SYS_MREMAP, Args: []uint64{0x10000, 0x1000, 0x3000, 1, 0}, Result: 0x10000},
			[]MemoryChange{{Call: "mremap", Addr: 0x10000, Size: 0x1000, Grown: 0x3000}}},
		{"mremap to less", Event{Object: unix.SYS_MREMAP, Args: []uint64{0x10000, 0x3000, 0x1000, 0, 0}, Result: 0x10000},
			[]MemoryChange{{Call: "mremap", Addr: 0x11000, Size: 0x2000, Gone: true}}},
		{"mremap that keeps the old place", Event{Object: unix.SYS_MREMAP, Args: []uint64{0x10000, 0x1000, 0x1000, 1 | unix.MREMAP_DONTUNMAP, 0}, Result: 0x50000},
			[]MemoryChange{{Call: "mremap", Addr: 0x50000, Size: 0x1000}}},
		{"shmat", Event{Object: unix.SYS_SHMAT, Args: []uint64{7, 0, 0}, Result: 0x50000, Payloads: []Payload{{Kind: PayloadFile, Data: attached.Encode()}}},
			[]MemoryChange{{Call: "shmat", Addr: 0x50000, Size: 0x2000}}},
		{"shmdt", Event{Object: unix.SYS_SHMDT, Args: []uint64{0x50000}},
			[]MemoryChange{{Call: "shmdt", Addr: 0x50000, Gone: true, Whole: true}}},
		{"another call", Event{Object: unix.SYS_READ, Args: []uint64{0, 0x10000, 5}, Result: 5}, nil},
		{"no arguments", Event{Object: unix.SYS_MUNMAP}, nil},
	} {
		c.e.Kind = KindSyscall
		if got := c.e.MemoryChanges(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}
