package object

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// spillSize is from which size on a decompressed section lives in a file.
	spillSize = 16 << 20
	// spillStep is how much is decompressed between two writes.
	spillStep = 256 << 10
	// forgetStep is how much is decompressed between two calls of forget.
	forgetStep = 16 << 20
)

// spillError is trouble with the temporary file and not with what goes there.
type spillError struct{ err error }

func (e *spillError) Error() string { return "temporary file: " + e.err.Error() }
func (e *spillError) Unwrap() error { return e.err }

// spill decompresses into a private temporary file without a name and maps
// it. The mapping outlives the file descriptor; f's Close ends it.
func (p packing) spill(f *File, packed []byte) ([]byte, error) {
	file, err := os.CreateTemp("", "diagnose-section-*") // mode 0600, in $TMPDIR
	if err != nil {
		return nil, &spillError{err}
	}
	defer file.Close()
	if err := os.Remove(file.Name()); err != nil {
		return nil, &spillError{err}
	}
	if err := p.spillTo(file, f, packed); err != nil {
		return nil, err
	}
	data, err := unix.Mmap(int(file.Fd()), 0, int(p.size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, &spillError{err}
	}
	// Units are looked at here and there: without this each look would map
	// sixteen pages (mm/memory.c, do_fault_around). A refusal costs memory only.
	_ = unix.Madvise(data, unix.MADV_RANDOM)
	f.adopt(data)
	return data, nil
}

// spillTo writes exactly the claimed size and expects the stream's end there.
// The packed bytes behind it are given back to the kernel as it goes.
func (p packing) spillTo(w io.Writer, f *File, packed []byte) error {
	input := bytes.NewReader(packed)
	r, err := p.unpacker(input)
	if err != nil {
		return err
	}
	defer r.Close()
	buffer := make([]byte, spillStep)
	for done := uint64(0); done < p.size; {
		n, err := io.ReadFull(r, buffer[:min(spillStep, p.size-done)])
		if err != nil {
			return fmt.Errorf("at byte %d of %d: %w", done+uint64(n), p.size, noEOF(err))
		}
		if _, err := w.Write(buffer[:n]); err != nil {
			return &spillError{err}
		}
		done += uint64(n)
		if done%(forgetStep) == 0 {
			f.forget(packed[:len(packed)-input.Len()])
		}
	}
	f.forget(packed)
	return expectEnd(r, p.size)
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
