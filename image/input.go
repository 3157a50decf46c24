package image

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image/object"
)

// coreInput is a core file in memory.
type coreInput struct {
	// name is the input's name in errors.
	name   string
	data   []byte
	limits []evidence.Limit
	// file is the mapped file, kept open under a name of /proc because it may
	// have lost its own.
	file  string
	close func() error
}

// openInput maps the core at path, unpacked if it is compressed; "-" and
// pipes are copied to a temporary file first.
func openInput(path string, opts *Options) (*coreInput, error) {
	if path == "-" {
		return fileInput("standard input", os.Stdin, opts)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return nil, &object.FormatError{File: path, Reason: "is a directory, not a core file"}
	case !mode.IsRegular() && mode&os.ModeNamedPipe == 0:
		return nil, &object.FormatError{File: path, Reason: "is neither a file nor a pipe"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return fileInput(path, f, opts)
}

func fileInput(name string, f *os.File, opts *Options) (*coreInput, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return spool(name, f, opts)
	}
	head := make([]byte, longestMagic)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if compressionOf(head[:n]) != nil {
		return spool(name, io.NewSectionReader(f, 0, info.Size()), opts)
	}
	return mapInput(name, f)
}

// forget returns the pages that were read to the kernel; another read loads
// them again. A failure costs memory, nothing else.
func (in *coreInput) forget() { _ = unix.Madvise(in.data, unix.MADV_DONTNEED) }

// mapInput maps a whole file; its pages are read on first access.
func mapInput(name string, f *os.File) (*coreInput, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, &object.FormatError{File: name, Reason: "the file is empty"}
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("%s: mmap of %d bytes: %w", name, info.Size(), err)
	}
	kept, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		unix.Munmap(data)
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &coreInput{name: name, data: data, file: fmt.Sprintf("/proc/self/fd/%d", kept), close: func() error {
		return errors.Join(unix.Munmap(data), unix.Close(kept))
	}}, nil
}
