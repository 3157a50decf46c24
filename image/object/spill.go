package object

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// spillSize is from which size on a decompressed section lives in a file.
const spillSize = 16 << 20

// spill is a private temporary file without a name, mapped whole. The mapping
// is read only as far as the file was written.
type spill struct {
	file *os.File
	data []byte
}

// newSpill makes room for a section of that size; f's Close gives it back.
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
	f.spillMutex.Lock()
	defer f.spillMutex.Unlock()
	f.spilled = append(f.spilled, s)
	return s, nil
}

// forget lets the kernel take back the pages within b, a part of the mapped
// file; reading them again brings them back.
func (f *File) forget(b []byte) {
	if !f.mapped || len(b) == 0 {
		return
	}
	page := uintptr(os.Getpagesize())
	skip := -uintptr(unsafe.Pointer(&b[0])) & (page - 1)
	if size := uintptr(len(b)); size >= skip+page {
		// A refusal costs memory, nothing else.
		_ = unix.Madvise(b[skip:skip+(size-skip)/page*page], unix.MADV_DONTNEED)
	}
}

func (f *File) dropSpilled() error {
	f.spillMutex.Lock()
	defer f.spillMutex.Unlock()
	var err error
	for _, m := range f.spilled {
		err = errors.Join(err, unix.Munmap(m.data), m.file.Close())
	}
	f.spilled = nil
	return err
}
