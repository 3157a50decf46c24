package object

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// spillSize is the size from which a decompressed section is stored in a file.
const spillSize = 16 << 20

// spill is a private temporary file without a name, mapped whole. The mapping
// is read only up to the end of the written part.
type spill struct {
	file *os.File // nil for memory
	data []byte
}

// newSpill creates space for a section of that size; c's close releases it.
func newSpill(c *contents, size uint64) (*spill, error) {
	file, err := os.CreateTemp("", "diagnose-section-*") // mode 0600, in $TMPDIR
	if err != nil {
		return nil, err
	}
	if err = errors.Join(os.Remove(file.Name()), file.Truncate(int64(size))); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	data, err := unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	s := &spill{file, data}
	c.adopt(s)
	return s, nil
}

// newRoom allocates memory for a section of that size, outside the Go heap if
// c's close can release it: pages without decompressed bytes take no memory,
// and the garbage collector must not count them as used.
func newRoom(c *contents, size uint64) []byte {
	if !c.mapped || size == 0 {
		return make([]byte, size)
	}
	data, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return make([]byte, size)
	}
	c.adopt(&spill{data: data})
	return data
}
