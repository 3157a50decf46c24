package object

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// spillSize is from which size on a decompressed section lives in a file.
	spillSize = 16 << 20
	// spillStep is how much is decompressed between two writes.
	spillStep = 256 << 10
)

// spillError is trouble with the temporary file and not with what goes there.
type spillError struct{ err error }

func (e *spillError) Error() string { return "temporary file: " + e.err.Error() }
func (e *spillError) Unwrap() error { return e.err }

// spill copies exactly size bytes and the end of r into a private temporary
// file without a name and maps it. The mapping outlives the file descriptor.
func spill(r io.Reader, size uint64) ([]byte, error) {
	file, err := os.CreateTemp("", "diagnose-section-*") // mode 0600, in $TMPDIR
	if err != nil {
		return nil, &spillError{err}
	}
	defer file.Close()
	if err := os.Remove(file.Name()); err != nil {
		return nil, &spillError{err}
	}
	if err := copyExactly(file, r, size); err != nil {
		return nil, err
	}
	data, err := unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, &spillError{err}
	}
	// Units are looked at here and there: without this each look would map
	// sixteen pages (mm/memory.c, do_fault_around). A refusal costs memory only.
	_ = unix.Madvise(data, unix.MADV_RANDOM)
	return data, nil
}

func copyExactly(w io.Writer, r io.Reader, size uint64) error {
	buffer := make([]byte, spillStep)
	for done := uint64(0); done < size; {
		n, err := io.ReadFull(r, buffer[:min(spillStep, size-done)])
		if err != nil {
			return fmt.Errorf("at byte %d of %d: %w", done+uint64(n), size, noEOF(err))
		}
		if _, err := w.Write(buffer[:n]); err != nil {
			return &spillError{err}
		}
		done += uint64(n)
	}
	return expectEnd(r, size)
}

// adopt has Close unmap a mapping that was made for the file's contents.
func (f *File) adopt(mapping []byte) {
	f.spillMutex.Lock()
	defer f.spillMutex.Unlock()
	f.spilled = append(f.spilled, mapping)
}

func (f *File) dropSpilled() error {
	f.spillMutex.Lock()
	defer f.spillMutex.Unlock()
	var err error
	for _, m := range f.spilled {
		err = unix.Munmap(m)
	}
	f.spilled = nil
	return err
}
