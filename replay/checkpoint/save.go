package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/internal/procmaps"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// Save writes the state of the process, with pages of at most so many bytes. about is kept with it. The error is an *ImpossibleError where
// the process cannot be restored from a file.
func (c *Checkpoint) Save(w io.Writer, about any, files Files, most int64) error {
	return c.keeper.do(func() error {
		s := &savedState{Control: c.control, TrapPC: c.trapPC, Mapped: c.mapped, Library: c.library, First: c.first.saved(), Alive: c.alive}
		for i := range c.threads {
			s.Threads = append(s.Threads, c.threads[i].saved())
		}
		x := saver{pid: c.keeper.pid, files: files, left: most, state: s}
		return x.save(w, about)
	})
}

// saver writes the state of a process with one stopped thread.
type saver struct {
	pid    int
	files  Files
	left   int64 // bytes of pages that may still be written
	state  *savedState
	memory *ptrace.Memory
	table  *os.File // the process's pagemap
	out    io.Writer
}

func (x *saver) save(w io.Writer, about any) (err error) {
	if x.state.About, err = marshal(about); err != nil {
		return err
	}
	if x.memory, err = ptrace.OpenMemory(x.pid); err != nil {
		return err
	}
	defer x.memory.Close()
	if x.table, err = os.Open(fmt.Sprintf("/proc/%d/pagemap", x.pid)); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	defer x.table.Close()
	x.out = w
	if _, err := io.WriteString(w, savedMagic); err != nil {
		return err
	}
	if err := errors.Join(x.descriptors(), x.kernelState()); err != nil {
		return err
	}
	if err := x.areas(); err != nil {
		return err
	}
	return writeState(w, x.state)
}

// descriptors looks at the open files: those that a replay begins with, and the engine's.
func (x *saver) descriptors() error {
	control, err := tracee.ReadStruct[agent.RawControl](x.memory, x.state.Control)
	if err != nil {
		return err
	}
	x.state.DataFD = control.DataFD
	dir := fmt.Sprintf("/proc/%d/fd", x.pid)
	list, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	for _, e := range list {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		n, err := strconv.Atoi(e.Name())
		switch {
		case err == nil && n <= 2 && target == os.DevNull, err == nil && n == int(control.DataFD) && x.files.Data != nil:
		case inherited(e.Name(), target):
		default:
			return impossible("the process has the file %s open", target)
		}
	}
	return nil
}

// inherited reports whether a descriptor is one that the tool has inherited itself and passed on, which no replay uses.
func inherited(name, target string) bool {
	own, err := os.Readlink(filepath.Join("/proc/self/fd", name))
	return err == nil && own == target
}

// kernelState asks the kernel through the process.
func (x *saver) kernelState() error {
	caller, err := ptrace.NewCaller(x.pid, page)
	if err != nil {
		return err
	}
	if x.state.Break, err = caller.Call(unix.SYS_BRK, 0); err != nil {
		return err
	}
	for n := uint64(1); n <= lastSignal; n++ {
		action := make([]byte, actionSize)
		if _, err := caller.Call(unix.SYS_RT_SIGACTION, n, 0, page+scratchAt, 8); err != nil {
			return err
		}
		if _, err := x.memory.ReadAt(action, page+scratchAt); err != nil {
			return err
		}
		x.state.Actions = append(x.state.Actions, action)
	}
	return nil
}

// The kernel's names of mappings that each process has from its start. The page of vsyscall is in every process.
const (
	stackName    = "[stack]"
	vsyscallName = "[vsyscall]"
)

func fromStart(name string) bool {
	return name == stackName || name == "[vdso]" || strings.HasPrefix(name, "[vvar")
}

// areas writes the mappings and their pages.
func (x *saver) areas() error {
	list, err := procmaps.ReadAreas(x.pid)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	for i := range list {
		a := &list[i]
		if a.Path == vsyscallName || a.Start == page && a.End == page+tracee.PageSize {
			continue
		}
		saved, err := x.area(a)
		if err != nil {
			return err
		}
		x.state.Areas = append(x.state.Areas, saved)
		if a.Anonymous && (saved.Kernel == "" || saved.Kernel == stackName) {
			if err := x.pages(&saved); err != nil {
				return err
			}
		}
	}
	return nil
}

// advices are the flags of mappings that are advice of the program's (proc_pid_smaps(5), madvise(2)).
var advices = map[string]int{"sr": unix.MADV_SEQUENTIAL, "rr": unix.MADV_RANDOM, "hg": unix.MADV_HUGEPAGE, "nh": unix.MADV_NOHUGEPAGE, "dd": unix.MADV_DONTDUMP}

func (x *saver) area(a *procmaps.Area) (savedArea, error) {
	s := savedArea{Span: tracee.Span{Start: uint64(a.Start), End: uint64(a.End)}, Protection: protectionOf(a)}
	if fromStart(a.Path) {
		s.Kernel = a.Path
		return s, nil
	}
	for _, flag := range a.Flags {
		advice, known := advices[flag]
		switch {
		case known:
			s.Advice = append(s.Advice, advice)
		case flag == "nr":
			s.NoReserve = true
		case !strings.Contains(" rd wr ex mr mw me ac sd ", " "+flag+" "):
			return s, impossible("the mapping at %v has the flag %s", a.Start, flag)
		}
	}
	if a.Inode == 0 {
		return s, nil
	}
	s.Offset = a.Offset
	var err error
	s.File, err = x.fileOf(a)
	return s, err
}

// protectionOf returns the protection of mmap(2).
func protectionOf(a *procmaps.Area) (protection int) {
	for i, bit := range []int{unix.PROT_READ, unix.PROT_WRITE, unix.PROT_EXEC} {
		if a.Perms[i] != '-' {
			protection |= bit
		}
	}
	return protection
}

// fileOf returns the file of a mapping.
func (x *saver) fileOf(a *procmaps.Area) (*mappedFile, error) {
	for role, f := range map[string]*os.File{roleImage: x.files.Image, roleData: x.files.Data} {
		if f == nil {
			continue
		}
		info, err := identify(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
		if err != nil {
			return nil, err
		}
		if info.Inode == a.Inode {
			return &mappedFile{Role: role}, nil
		}
	}
	f, err := identify(a.Path)
	if err != nil || f.Inode != a.Inode {
		return nil, impossible("the file of the mapping at %v was changed: %s", a.Start, a.Path)
	}
	return f, nil
}

// Bits of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const (
	pageOfFile  = 1 << 61
	pageSwapped = 1 << 62
	pagePresent = 1 << 63
)

// pages writes the pages of a mapping that are the process's own: those of a file that were written, others that are not all zero.
func (x *saver) pages(a *savedArea) error {
	const most = 64 << 30
	if a.Size() > most {
		return impossible("a mapping has %d bytes", a.Size())
	}
	entries := make([]byte, 8*mostPages)
	for at := a.Start; at < a.End; {
		n := min((a.End-at)/tracee.PageSize, mostPages)
		if _, err := x.table.ReadAt(entries[:8*n], int64(at/tracee.PageSize*8)); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		own := func(i uint64) bool {
			e := binary.LittleEndian.Uint64(entries[8*i:])
			return e&(pagePresent|pageSwapped) != 0 && e&pageOfFile == 0
		}
		for i := uint64(0); i < n; i++ {
			first := i
			for i < n && own(i) {
				i++
			}
			if first == i {
				continue
			}
			if err := x.run(at+first*tracee.PageSize, i-first, a.File != nil); err != nil {
				return err
			}
		}
		at += n * tracee.PageSize
	}
	return nil
}

// run writes pages that follow each other, without those that are all zero unless zeros is set.
func (x *saver) run(addr, count uint64, zeros bool) error {
	data := make([]byte, count*tracee.PageSize)
	if _, err := x.memory.ReadAt(data, int64(addr)); err != nil {
		return err
	}
	wanted := func(i uint64) bool {
		return zeros || !allZero(data[i*tracee.PageSize:(i+1)*tracee.PageSize])
	}
	for i := uint64(0); i < count; i++ {
		first := i
		for i < count && wanted(i) {
			i++
		}
		if first == i {
			continue
		}
		part := data[first*tracee.PageSize : i*tracee.PageSize]
		if x.left -= int64(len(part)); x.left < 0 {
			return impossible("its memory takes too much room in a file")
		}
		if _, err := x.out.Write(part); err != nil {
			return err
		}
		x.state.Pages = append(x.state.Pages, savedPages{addr + first*tracee.PageSize, uint32(i - first), crc32.Checksum(part, castagnoli)})
	}
	return nil
}

func allZero(p []byte) bool {
	for ; len(p) >= 8; p = p[8:] {
		if binary.LittleEndian.Uint64(p) != 0 {
			return false
		}
	}
	return true
}
