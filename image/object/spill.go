package object

import (
	"errors"
	"os"
	"unsafe"

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

// newSpill creates space for a section of that size; f's Close releases it.
func newSpill(f *File, size uint64) (*spill, error) {
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
	f.adopt(s)
	return s, nil
}

// newRoom allocates memory for a section of that size, outside the Go heap if
// f's Close can release it: pages without decompressed bytes take no memory,
// and the garbage collector must not count them as used.
func newRoom(f *File, size uint64) []byte {
	if !f.mapped || size == 0 {
		return make([]byte, size)
	}
	data, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return make([]byte, size)
	}
	f.adopt(&spill{data: data})
	return data
}

// adopt makes Close release a section's contents.
func (f *File) adopt(s *spill) {
	f.spillMutex.Lock()
	defer f.spillMutex.Unlock()
	f.spilled = append(f.spilled, s)
}

// forget lets the kernel reclaim the pages within b, a part of the mapped file;
// another read loads them again.
func (f *File) forget(b []byte) {
	if !f.mapped || len(b) == 0 {
		return
	}
	page := uintptr(os.Getpagesize())
	skip := -uintptr(unsafe.Pointer(&b[0])) & (page - 1)
	if size := uintptr(len(b)); size >= skip+page {
		// A failure costs memory, nothing else.
		_ = unix.Madvise(b[skip:skip+(size-skip)/page*page], unix.MADV_DONTNEED)
	}
}

func (f *File) dropSpilled() error {
	f.spillMutex.Lock()
	defer f.spillMutex.Unlock()
	var err error
	for _, m := range f.spilled {
		err = errors.Join(err, unix.Munmap(m.data))
		if m.file != nil {
			err = errors.Join(err, m.file.Close())
		}
	}
	f.spilled = nil
	return err
}
