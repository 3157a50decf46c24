package object

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// contents are the bytes of a file, and the space of its decompressed sections.
type contents struct {
	path   string // in errors
	data   []byte
	mapped bool
	closed sync.Once
	// spilled are the large decompressed sections.
	spilled    []*spill
	spillMutex sync.Mutex
}

// close unmaps the file.
func (c *contents) close() error {
	var err error
	c.closed.Do(func() {
		err = c.dropSpilled()
		if c.mapped {
			err = errors.Join(err, unix.Munmap(c.data))
		}
	})
	return err
}

// bytes returns part of the file; ok is false when it is outside.
func (c *contents) bytes(offset, size uint64) (b []byte, ok bool) {
	if n := uint64(len(c.data)); offset > n || size > n-offset {
		return nil, false
	}
	return c.data[offset : offset+size : offset+size], true
}

func (c *contents) formatError(section string, offset uint64, reason string, args ...any) *FormatError {
	return &FormatError{File: c.path, Section: section, Offset: offset, Reason: fmt.Sprintf(reason, args...)}
}

// guard runs read, which accesses mapped bytes. If the file was truncated after
// it was mapped, the kernel raises SIGBUS (mmap(2)), which becomes an error.
func (c *contents) guard(section string, read func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			err = c.faultError(section, fault.Addr())
		default:
			panic(fault)
		}
	}()
	read()
	return nil
}

func (c *contents) faultError(section string, addr uintptr) error {
	var offset uint64
	if len(c.data) > 0 {
		if base := uintptr(unsafe.Pointer(&c.data[0])); addr >= base && addr-base < uintptr(len(c.data)) {
			offset, section = uint64(addr-base), ""
		}
	}
	return c.formatError(section, offset, "the file was truncated while it was read")
}

// adopt makes Close release a section's contents.
func (c *contents) adopt(s *spill) {
	c.spillMutex.Lock()
	defer c.spillMutex.Unlock()
	c.spilled = append(c.spilled, s)
}

// forget lets the kernel reclaim the pages within b, a part of the mapped file;
// another read loads them again.
func (c *contents) forget(b []byte) {
	if !c.mapped || len(b) == 0 {
		return
	}
	page := uintptr(os.Getpagesize())
	skip := -uintptr(unsafe.Pointer(&b[0])) & (page - 1)
	if size := uintptr(len(b)); size >= skip+page {
		// A failure costs memory, nothing else.
		_ = unix.Madvise(b[skip:skip+(size-skip)/page*page], unix.MADV_DONTNEED)
	}
}

func (c *contents) dropSpilled() error {
	c.spillMutex.Lock()
	defer c.spillMutex.Unlock()
	var err error
	for _, m := range c.spilled {
		err = errors.Join(err, unix.Munmap(m.data))
		if m.file != nil {
			err = errors.Join(err, m.file.Close())
		}
	}
	c.spilled = nil
	return err
}
