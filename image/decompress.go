package image

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image/object"
)

// compression is a format that cores are stored in.
type compression struct {
	name  string
	magic []byte
	open  func(io.Reader) (io.Reader, func(), error)
}

const longestMagic = 6

// maxWindow is the largest zstd window that zstd(1) accepts unasked.
const maxWindow = 128 << 20

var compressions = []*compression{
	{"zstd", []byte{0x28, 0xb5, 0x2f, 0xfd}, func(r io.Reader) (io.Reader, func(), error) {
		d, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		return d, d.Close, nil
	}},
	{"lz4", []byte{0x04, 0x22, 0x4d, 0x18}, func(r io.Reader) (io.Reader, func(), error) {
		return lz4.NewReader(r), func() {}, nil
	}},
	{"gzip", []byte{0x1f, 0x8b}, func(r io.Reader) (io.Reader, func(), error) {
		z, err := gzip.NewReader(r)
		return z, func() {}, err
	}},
	{"xz", []byte{0xfd, '7', 'z', 'X', 'Z', 0}, func(r io.Reader) (io.Reader, func(), error) {
		const start = 12 + 1024 // the stream's header and the largest of a block
		buffered := bufio.NewReaderSize(r, 1<<16)
		head, _ := buffered.Peek(start) // a later read returns the error
		if err := object.CheckXZ(head); err != nil {
			return nil, nil, err
		}
		r = buffered
		z, err := xz.NewReader(r)
		return z, func() {}, err
	}},
}

func compressionOf(head []byte) *compression {
	for _, c := range compressions {
		if bytes.HasPrefix(head, c.magic) {
			return c
		}
	}
	return nil
}

// spool copies a stream, unpacked if it is compressed, into a private
// temporary file without a name, and maps that.
func spool(name string, r io.Reader, opts *Options) (*coreInput, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	head, err := buffered.Peek(longestMagic)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	stream, done := io.Reader(buffered), func() {}
	format := compressionOf(head)
	if format != nil {
		err := recovered(func() (err error) { stream, done, err = format.open(buffered); return err })
		if err != nil {
			return nil, &object.FormatError{File: name, Reason: "damaged " + format.name + " data", Err: err}
		}
	}
	defer done()
	temp, err := privateFile()
	if err != nil {
		return nil, err
	}
	defer temp.Close()
	writer := &sparseWriter{file: temp, name: name, opts: opts}
	if err := writer.setBounds(); err != nil {
		return nil, err
	}
	copyErr := recovered(func() error { return writer.copyFrom(stream) })
	var stop *outputError
	if errors.As(copyErr, &stop) {
		return nil, stop.err
	}
	if err := temp.Truncate(writer.size); err != nil {
		return nil, fmt.Errorf("%s: temporary file: %w", name, err)
	}
	if writer.size == 0 && copyErr != nil {
		return nil, &object.FormatError{File: name, Reason: "nothing could be unpacked", Err: copyErr}
	}
	input, err := mapInput(name, temp)
	if err == nil && copyErr != nil {
		input.limits = append(input.limits, evidence.Limit{Code: evidence.LimitTruncated, Subject: name, Severe: true, Reason: fmt.Sprintf(
			"the compressed core could be unpacked only up to %s: %v", mebibytes(uint64(writer.size)), copyErr)}.Worded())
	}
	return input, err
}

// recovered turns a decoder's panic on damaged input into an error.
func recovered(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("decoder failed: %v", r)
		}
	}()
	return f()
}

// privateFile makes a temporary file that only this process can reach.
func privateFile() (*os.File, error) {
	f, err := os.CreateTemp("", "diagnose-core-*") // mode 0600, in $TMPDIR
	if err != nil {
		return nil, fmt.Errorf("temporary file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("temporary file: %w", err)
	}
	return f, nil
}

// outputError is an error of writing the copy, not of the data.
type outputError struct{ err error }

func (e *outputError) Error() string { return e.err.Error() }

// sparseWriter writes a core with holes for its zero pages. It is bounded by
// the free space of the disk.
type sparseWriter struct {
	file *os.File
	name string
	opts *Options
	// size counts all bytes, written those that take space.
	size, written     int64
	mostSize, mostNew int64
}

// setBounds allows nine tenths of the free disk, and ten times the free disk
// as the size with holes, so that a small file of compressed zeros ends.
func (w *sparseWriter) setBounds() error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(w.file.Fd()), &fs); err != nil {
		return fmt.Errorf("temporary file: statfs: %w", err)
	}
	free := int64(min(fs.Bavail, 1<<40)) * fs.Bsize
	w.mostNew = free / 10 * 9
	w.mostSize = max(min(free, 1<<50)*10, 1<<30)
	return nil
}

func (w *sparseWriter) copyFrom(r io.Reader) error {
	const told = 256 << 20 // bytes between two lines of progress
	buffer := make([]byte, 1<<20)
	for {
		n, readErr := fill(r, buffer)
		if w.size == 0 && n > 0 {
			if err := (&elfCore{name: w.name, data: buffer[:n]}).checkHeader(); err != nil {
				return &outputError{err}
			}
		}
		before := w.size
		if err := w.write(buffer[:n]); err != nil {
			return &outputError{err}
		}
		if before/told != w.size/told {
			w.opts.progress(fmt.Sprintf("unpacking the core: %s", mebibytes(uint64(w.size))))
		}
		if readErr == io.EOF {
			return nil
		}
		if readErr != nil {
			return readErr
		}
	}
}

// fill reads until b is full and, unlike io.ReadFull, returns the reader's
// own error: decoders report a cut stream as io.ErrUnexpectedEOF.
func fill(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = r.Read(b[n:])
		n += m
	}
	return n, err
}

var zeroPage [pageSize]byte

// write appends b, whose runs of zero pages become holes.
func (w *sparseWriter) write(b []byte) error {
	for len(b) > 0 {
		run, hole := pageRun(b)
		at := w.size
		w.size += int64(run)
		if w.size > w.mostSize {
			return fmt.Errorf("%s: unpacks to more than %s, more than the disk could ever hold", w.name, mebibytes(uint64(w.mostSize)))
		}
		if !hole {
			if w.written += int64(run); w.written > w.mostNew {
				return fmt.Errorf("%s: unpacks to more than %s, more than %s has room for (TMPDIR chooses another place)",
					w.name, mebibytes(uint64(w.mostNew)), os.TempDir())
			}
			if _, err := w.file.WriteAt(b[:run], at); err != nil {
				return fmt.Errorf("%s: writing the unpacked core to %s (TMPDIR chooses another place): %w", w.name, os.TempDir(), err)
			}
		}
		b = b[run:]
	}
	return nil
}

// pageRun returns the length of the pages at the start of b that are alike
// in being zero or not.
func pageRun(b []byte) (n int, zero bool) {
	isZero := func(p []byte) bool { return bytes.Equal(p, zeroPage[:len(p)]) }
	zero = isZero(b[:min(len(b), pageSize)])
	for n < len(b) {
		page := b[n:min(n+pageSize, len(b))]
		if isZero(page) != zero {
			break
		}
		n += len(page)
	}
	return n, zero
}
