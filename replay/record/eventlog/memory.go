package eventlog

import (
	"golang.org/x/sys/unix"

	"diagnose/evidence"
)

// MemoryChange is what a system call did to the mappings of the process.
type MemoryChange struct {
	// Call is the system call's name.
	Call string
	// Addr and Size are the memory, Size in bytes and whole pages. Gone: it is mapped no more; otherwise the call mapped it.
	Addr evidence.Addr
	Size uint64
	Gone bool
	// Whole: the mapping that begins at Addr is gone, of whatever size; Size is 0.
	Whole bool
	// Grown is the new size of a mapping that grew in its place; 0: it is another change.
	Grown uint64
	// From is the old place of a mapping that was moved, with Kept bytes; Kept is 0 of others.
	From evidence.Addr
	Kept uint64
}

// MemoryChanges returns what a system call unmapped and mapped, in this order (mmap(2), mremap(2), shmop(2)).
func (e *Event) MemoryChanges() []MemoryChange {
	if e.Kind != KindSyscall || len(e.Args) == 0 {
		return nil
	}
	name, first, result := SyscallName(e.Object), evidence.Addr(e.Args[0]), evidence.Addr(e.Result)
	switch {
	case e.Object == unix.SYS_MMAP && e.Result > 0 && len(e.Args) > 1:
		return []MemoryChange{{Call: name, Addr: result, Size: wholePages(e.Args[1])}}
	case e.Object == unix.SYS_MUNMAP && e.Result == 0 && len(e.Args) > 1:
		return []MemoryChange{{Call: name, Addr: first, Size: wholePages(e.Args[1]), Gone: true}}
	case e.Object == unix.SYS_MREMAP && e.Result > 0 && len(e.Args) > 3:
		return remapped(name, first, result, e.Args)
	case e.Object == unix.SYS_SHMAT && e.Result > 0:
		for i := range e.Payloads {
			if m, ok := e.Payloads[i].Mapped(); ok && m.Size > 0 {
				return []MemoryChange{{Call: name, Addr: result, Size: wholePages(m.Size)}}
			}
		}
	case e.Object == unix.SYS_SHMDT && e.Result == 0:
		return []MemoryChange{{Call: name, Addr: first, Gone: true, Whole: true}}
	}
	return nil
}

// remapped is what mremap(2) did. With an old size of 0 it maps shared memory once more, and the old place stays; so it
// does with MREMAP_DONTUNMAP.
func remapped(name string, old, result evidence.Addr, args []uint64) []MemoryChange {
	before, after := wholePages(args[1]), wholePages(args[2])
	made := MemoryChange{Call: name, Addr: result, Size: after}
	switch {
	case result == old && after < before:
		return []MemoryChange{{Call: name, Addr: old + evidence.Addr(after), Size: before - after, Gone: true}}
	case result == old:
		return []MemoryChange{{Call: name, Addr: old, Size: before, Grown: after}}
	case before == 0 || args[3]&unix.MREMAP_DONTUNMAP != 0:
		return []MemoryChange{made}
	}
	made.From, made.Kept = old, min(before, after)
	return []MemoryChange{{Call: name, Addr: old, Size: before, Gone: true}, made}
}

// wholePages rounds a size up to pages, as the kernel does.
func wholePages(size uint64) uint64 {
	const page = 4096
	return (size + page - 1) &^ (page - 1)
}
