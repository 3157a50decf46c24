package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// Saved is the state of a process in a file: the bytes of pages, then the state in JSON, its length, and a digest of both of these. It can be
// restored on the machine that saved it, until that starts again.
type Saved struct {
	// About is the caller's.
	About json.RawMessage
	state savedState
	file  io.ReaderAt
}

type savedState struct {
	About           json.RawMessage
	Control, TrapPC uint64
	Mapped, Library []tracee.Span
	First           savedThread
	Alive           bool
	Threads         []savedThread
	Areas           []savedArea
	// Pages are in ascending order, and so are their bytes in the file, without gaps.
	Pages []savedPages
	Break uint64
	// Actions are what rt_sigaction(2) returns, from signal 1 on.
	Actions [][]byte
	// DataFD is the engine's descriptor of Files.Data, -1 if there is none.
	DataFD int32
}

// savedThread has the fields of a thread.
type savedThread struct {
	Index                       uint32
	Stopped                     bool
	Final                       *tracee.Final
	Raise                       *tracee.PendingSignal
	Interrupted                 bool
	Regs                        ptrace.Registers
	Extended                    []byte
	Mask                        uint64
	Clears, Robust, RobustBytes uint64
	Name                        string
	Known, Traps                bool
}

// savedArea is a mapping. File is nil if it has none.
type savedArea struct {
	tracee.Span
	Protection int
	NoReserve  bool
	Advice     []int  // of madvise(2)
	Kernel     string // the kernel's name of one that each process has from its start
	Offset     uint64
	File       *mappedFile
}

// mappedFile is a file of the system's, unless Role says which one of the replay's it is.
type mappedFile struct {
	Role                    string
	Path                    string
	Device, Inode           uint64
	Size, Modified, Changed int64
}

// The roles of files: those of Files.
const (
	roleImage = "image"
	roleData  = "data"
)

// savedPages are pages that follow each other. Sum is the CRC-32C of their bytes.
type savedPages struct {
	Addr  uint64
	Count uint32
	Sum   uint32
}

const (
	savedMagic  = "diagnose checkpoint 1\n"
	trailerSize = 8 + sha256.Size
	// mostState bounds the state in bytes, mostPages the pages that are read and written at once.
	mostState = 256 << 20
	mostPages = 256
	mostAreas = 1 << 17
	// endOfMemory is the first address that no process has (Documentation/arch/x86/x86_64/mm.rst).
	endOfMemory = 1 << 47
	lastSignal  = 64
	actionSize  = 32 // of the kernel's struct sigaction
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// DamagedError says that a file is none that Save has written.
type DamagedError struct{ Why string }

func (e *DamagedError) Error() string { return "replay: the file of a checkpoint is damaged: " + e.Why }

func damaged(format string, args ...any) error { return &DamagedError{fmt.Sprintf(format, args...)} }

// Files are those of a replay that its process has mapped or open.
type Files struct {
	Image *os.File // of the log
	Data  *os.File // nil: there is none
}

// writeState ends a file whose pages are written.
func writeState(w io.Writer, s *savedState) error {
	state, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if len(state) > mostState {
		return impossible("its state has %d bytes", len(state))
	}
	end := binary.LittleEndian.AppendUint64(nil, uint64(len(state)))
	sum := sha256.New()
	sum.Write(state)
	sum.Write(end)
	_, err = w.Write(append(append(state, end...), sum.Sum(nil)...))
	return err
}

// Read reads the state from a file of size bytes. The pages are read when it is restored. A file that Save has not written is a *DamagedError.
func Read(file io.ReaderAt, size int64) (*Saved, error) {
	var trailer [trailerSize]byte
	magic := make([]byte, len(savedMagic))
	if size < int64(len(magic)+trailerSize) {
		return nil, damaged("it has %d bytes", size)
	}
	if _, err := file.ReadAt(magic, 0); err != nil {
		return nil, err
	}
	if _, err := file.ReadAt(trailer[:], size-trailerSize); err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint64(trailer[:])
	if string(magic) != savedMagic || length > mostState || int64(length) > size-int64(len(magic)+trailerSize) {
		return nil, damaged("it does not begin or end as one")
	}
	state := make([]byte, length+8)
	at := size - trailerSize - int64(length)
	if _, err := file.ReadAt(state, at); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(state); !bytes.Equal(sum[:], trailer[8:]) {
		return nil, damaged("the digest of its state is another")
	}
	s := &Saved{file: file}
	if err := json.Unmarshal(state[:length], &s.state); err != nil {
		return nil, damaged("%v", err)
	}
	s.About = s.state.About
	return s, s.state.check(at - int64(len(magic)))
}

// check checks the addresses and the numbers of bytes. pages is the size of the pages in the file.
func (s *savedState) check(pages int64) error {
	switch {
	case len(s.Areas) > mostAreas, len(s.Threads) >= agent.RThreads, len(s.Actions) != lastSignal:
		return damaged("%d mappings, %d threads, %d actions", len(s.Areas), len(s.Threads), len(s.Actions))
	case s.Break >= endOfMemory:
		return damaged("its data ends at %#x", s.Break)
	}
	for _, x := range s.Actions {
		if len(x) != actionSize {
			return damaged("an action for a signal has %d bytes", len(x))
		}
	}
	last := uint64(0)
	for i := range s.Areas {
		a := &s.Areas[i]
		if a.Start < last || a.End <= a.Start || a.End > endOfMemory || (a.Start|a.End|a.Offset)%tracee.PageSize != 0 || a.Start <= page && a.End > page {
			return damaged("a mapping at %#x to %#x", a.Start, a.End)
		}
		last = a.End
	}
	return s.checkPages(pages)
}

func (s *savedState) checkPages(size int64) error {
	last, areas := uint64(0), s.Areas
	for _, x := range s.Pages {
		end := x.Addr + uint64(x.Count)*tracee.PageSize
		for len(areas) > 0 && areas[0].End <= x.Addr {
			areas = areas[1:]
		}
		if x.Addr < last || x.Addr%tracee.PageSize != 0 || x.Count == 0 || x.Count > mostPages || len(areas) == 0 || x.Addr < areas[0].Start ||
			end > areas[0].End || areas[0].Kernel != "" && areas[0].Kernel != stackName {
			return damaged("pages at %#x", x.Addr)
		}
		last = end
		size -= int64(x.Count) * tracee.PageSize
	}
	if size != 0 {
		return damaged("its pages have %d bytes more", size)
	}
	return nil
}

// saved returns the fields of a thread.
func (x *thread) saved() savedThread {
	t := &x.tracee
	return savedThread{Index: t.Index, Stopped: t.Stopped, Final: t.Final, Raise: t.Raise, Interrupted: t.Deferred != nil, Regs: x.regs,
		Extended: x.extended, Mask: x.mask, Clears: x.clears, Robust: x.robust, RobustBytes: x.robustLength, Name: x.name, Known: x.known, Traps: x.traps}
}

// thread is the inverse of saved.
func (x *savedThread) thread() (thread, error) {
	const mostName = 16 // TASK_COMM_LEN of linux/sched.h
	if x.Index >= agent.RThreads || len(x.Name) >= mostName || len(x.Extended) > maxExtended || x.Stopped && len(x.Extended) == 0 {
		return thread{}, damaged("thread %d", x.Index)
	}
	t := thread{tracee: tracee.Thread{Index: x.Index, Stopped: x.Stopped, Final: x.Final, Raise: x.Raise}, regs: x.Regs, extended: x.Extended,
		mask: x.Mask, clears: x.Clears, robust: x.Robust, robustLength: x.RobustBytes, name: x.Name, known: x.Known, traps: x.Traps}
	if x.Interrupted {
		t.tracee.Deferred = &ptrace.Stop{Kind: ptrace.Interrupted}
	}
	return t, nil
}

// maxExtended is larger than the XSAVE area of any processor.
const maxExtended = 64 << 10

// identify returns the file of a path as it is now.
func identify(path string) (*mappedFile, error) {
	var info unix.Stat_t
	if err := unix.Stat(path, &info); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return identityOf(path, &info)
}

func identityOf(path string, info *unix.Stat_t) (*mappedFile, error) {
	if info.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.New("checkpoint: " + path + " is not a regular file")
	}
	return &mappedFile{Path: path, Device: info.Dev, Inode: info.Ino, Size: info.Size, Modified: info.Mtim.Nano(), Changed: info.Ctim.Nano()}, nil
}
