package procmaps

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Query is struct procmap_query of linux/fs.h, Linux 6.11: a mapping without its name.
type Query struct {
	size, flags, addr     uint64
	Start, End            uint64
	Flags                 QueryFlags // of the mapping
	pageSize              uint64
	offset, inode         uint64
	devMajor, devMinor    uint32
	nameSize, buildIDSize uint32
	nameAddr, buildIDAddr uint64
}

// QueryFlags are flags of mappings and of queries.
type QueryFlags uint64

// The flags. A query with some of the first four finds only mappings that have them.
const (
	Readable QueryFlags = 1 << iota
	Writable
	Executable
	SharedFlag
	// OrNext: the mapping that has the address, or else the first one after it.
	OrNext
)

// OpenQueries opens the file of a process that Find takes.
func OpenQueries(pid int) (*os.File, error) { return os.Open(fmt.Sprintf("/proc/%d/maps", pid)) }

// Find asks the kernel for the mapping that has an address. The error is that of ioctl(2), as where the kernel is older.
func Find(maps *os.File, addr uint64, flags QueryFlags) (q Query, found bool, err error) {
	const number = 0xc0686611 // PROCMAP_QUERY: _IOWR('f', 17, struct procmap_query)
	q = Query{size: uint64(unsafe.Sizeof(q)), flags: uint64(flags), addr: addr}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, maps.Fd(), number, uintptr(unsafe.Pointer(&q)))
	switch errno {
	case 0:
		return q, true, nil
	case unix.ENOENT:
		return q, false, nil
	}
	return q, false, errno
}
