package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/agent"
)

// Sizes of agent/src/record.h.
const (
	logMagic         = agent.RecordMagic
	logVersion       = agent.RecordVersion
	logHeaderSize    = 64
	extentMagic      = agent.ExtentMagic
	extentSize       = agent.ExtentSize
	extentHeaderSize = 32
	eventHeaderSize  = 48
	payloadHeader    = 16
	MostThreads      = agent.RThreads
	mainThread       = 1
)

// Log is the events of a recording, read from the file on demand. Several goroutines may use
// it.
type Log struct {
	// PID is the recorded process.
	PID uint32

	name    string
	file    io.ReaderAt
	size    int64
	cut     bool
	most    uint64 // number of events in the order of all threads; 0: all
	threads map[uint32]*logThread
	indices []uint32
}

// logThread is the extents of a thread's events.
type logThread struct {
	extents []extent // by sequence
	// problem is the error after the last extent.
	problem error
}

type extent struct {
	offset, size int64
	sequence     uint32
}

// MissingLog is a log whose file was never written: it is cut off before its first event.
func MissingLog(name string) *Log { return &Log{name: name, cut: true} }

// OpenLog is ReadLog of a file, whose holes it does not read.
func OpenLog(ctx context.Context, name string, file *os.File, wanted int64) (*Log, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return ReadLog(ctx, name, logFile{file, info.Size()}, info.Size(), wanted)
}

// ReadLog finds the extents of a log. wanted is the size of the file at the end of the
// recording, 0 if it is not known. A shorter file is a log that was cut off; the rest of it is
// read. A log without a header has no events. If ctx ends, ReadLog fails with its cause.
func ReadLog(ctx context.Context, name string, file io.ReaderAt, size, wanted int64) (*Log, error) {
	l := &Log{name: name, file: file, size: size, cut: size < wanted, threads: map[uint32]*logThread{}}
	var header [logHeaderSize]byte
	if n, err := file.ReadAt(header[:min(size, logHeaderSize)], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, &InputError{fmt.Errorf("%s: %w", name, err)}
	} else if n < len(header) {
		l.cut = true
		return l, nil
	}

	switch magic, version := le.Uint64(header[:]), le.Uint32(header[8:]); {
	case magic == 0:
		l.cut = true
		return l, nil
	case magic != logMagic:
		return nil, &CorruptError{name, 0, fmt.Sprintf("magic is %#x, not a log's", magic)}
	case version > logVersion:
		return nil, &VersionError{name, int(version), logVersion}
	case version == 0:
		return nil, &CorruptError{name, 8, "version is 0"}
	}
	l.PID = le.Uint32(header[12:])
	if err := l.findExtents(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// findExtents reads the headers of all extents. An extent without one belongs to a thread that
// ended before it used it.
func (l *Log) findExtents(ctx context.Context) error {
	for at := int64(extentSize); at < l.size; {
		if ctx.Err() != nil {
			return fmt.Errorf("record: %s is read as far as %#x of %#x: %w", l.name, at, l.size, context.Cause(ctx))
		}
		var header [extentHeaderSize]byte
		n, err := l.file.ReadAt(header[:min(l.size-at, extentHeaderSize)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return &InputError{fmt.Errorf("%s: %w", l.name, err)}
		}

		magic := le.Uint64(header[:])
		if n < len(header) || magic == 0 {
			if at, err = l.nextExtent(at); err != nil {
				return err
			}
			continue
		}
		e := extent{offset: at, size: int64(le.Uint64(header[16:])), sequence: le.Uint32(header[12:])}
		thread := le.Uint32(header[8:])
		switch {
		case magic != extentMagic && magic != agent.ExtentIdle:
			return &CorruptError{l.name, at, fmt.Sprintf("magic of an extent is %#x", magic)}
		case thread == 0 || thread >= MostThreads:
			return &CorruptError{l.name, at, fmt.Sprintf("extent of thread %d", thread)}
		case e.size < extentSize || e.size%extentSize != 0 || e.size > 1<<40:
			return &CorruptError{l.name, at, fmt.Sprintf("extent of %d bytes", e.size)}
		}
		if magic == extentMagic {
			l.addExtent(thread, e)
		}
		at += e.size
	}
	for _, index := range l.indices {
		l.order(l.threads[index])
	}
	slices.Sort(l.indices)
	return nil
}

// sparse is a file that knows where it has data.
type sparse interface {
	// nextData returns the offset at or after at where data begins, at most the file's size.
	nextData(at int64) (int64, error)
	// nextHole returns the offset at or after at where data ends, at most the file's size.
	nextHole(at int64) (int64, error)
}

// mostHole is how many bytes of holes are read as zeros: the zeros that a recorder wrote may be
// holes in a copy.
const mostHole = 64 << 20

// holds reports whether a file has enough data in a range to justify a buffer of that size.
func (l *Log) holds(at, length int64) (bool, error) {
	f, ok := l.file.(sparse)
	if !ok || length <= mostHole {
		return true, nil
	}
	end, holes := at+length, int64(0)
	for at < end && holes <= mostHole {
		data, err := f.nextData(at)
		if err != nil {
			return false, &InputError{fmt.Errorf("%s: %w", l.name, err)}
		}
		holes += min(data, end) - at
		if at = data; at >= end {
			break
		}
		if at, err = f.nextHole(at); err != nil {
			return false, &InputError{fmt.Errorf("%s: %w", l.name, err)}
		}
	}
	return holes <= mostHole, nil
}

// nextExtent is where the next extent may be after one without a header. Holes are skipped: a
// log may be a hole of a terabyte.
func (l *Log) nextExtent(at int64) (int64, error) {
	at += extentSize
	f, ok := l.file.(sparse)
	if !ok || at >= l.size {
		return at, nil
	}
	data, err := f.nextData(at)
	if err != nil {
		return 0, &InputError{fmt.Errorf("%s: %w", l.name, err)}
	}
	return max(at, data-data%extentSize), nil
}

// logFile is the file of a log.
type logFile struct {
	*os.File
	size int64
}

func (f logFile) nextData(at int64) (int64, error) {
	data, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return f.size, nil
	case errors.Is(err, unix.EINVAL): // the file system does not support holes
		return at, nil
	}
	return data, err
}

func (f logFile) nextHole(at int64) (int64, error) {
	hole, err := unix.Seek(int(f.Fd()), at, unix.SEEK_HOLE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENXIO) {
		return f.size, nil
	}
	return hole, err
}

func (l *Log) addExtent(thread uint32, e extent) {
	t := l.threads[thread]
	if t == nil {
		t = new(logThread)
		l.threads[thread] = t
		l.indices = append(l.indices, thread)
	}
	t.extents = append(t.extents, e)
}

// order sorts a thread's extents and keeps those before the first one that is missing or
// duplicate.
func (l *Log) order(t *logThread) {
	slices.SortStableFunc(t.extents, func(a, b extent) int { return int(int64(a.sequence) - int64(b.sequence)) })
	// If the process ended while an extent was copied, the copy may be incomplete. It is after
	// the original in the file.
	t.extents = slices.CompactFunc(t.extents, func(a, b extent) bool { return a.sequence == b.sequence && a.size == b.size })
	for i, e := range t.extents {
		if e.sequence == uint32(i) {
			continue
		}
		what := fmt.Sprintf("extent %d of the thread is missing", i)
		if i > 0 && e.sequence == t.extents[i-1].sequence {
			what = fmt.Sprintf("extent %d of the thread is there twice", e.sequence)
		}
		t.problem = &CorruptError{l.name, e.offset, what}
		t.extents = t.extents[:i]
		return
	}
}

// Threads returns the indices of the threads that have events, in ascending
// order.
func (l *Log) Threads() []uint32 { return slices.Clone(l.indices) }

// First is the log as if it ended after its first events, as many of all threads.
func (l *Log) First(events uint64) *Log {
	first := *l
	first.most = events
	return &first
}

// Size is the size of the file in bytes.
func (l *Log) Size() int64 { return l.size }

// Cut returns an error if the log is known to be shorter than the recording was.
func (l *Log) Cut() error {
	if !l.cut {
		return nil
	}
	if len(l.indices) == 0 {
		return &CutError{l.name, l.size, "it has no header, so no events"}
	}
	return &CutError{l.name, l.size, "the file was larger when the recording ended"}
}
