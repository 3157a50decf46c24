package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/internal/procmaps"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// Load makes a process with the saved state. launch starts the recorded program, as it was started for the replay, on the thread that calls
// it: of that process the kernel's own mappings, the place of its data, and its limits are kept. If the file is damaged, the error is a
// *DamagedError.
func (s *Saved) Load(files Files, launch func() (pid int, err error)) (*Checkpoint, error) {
	x := &s.state
	c := &Checkpoint{alive: x.Alive, control: x.Control, trapPC: x.TrapPC, mapped: x.Mapped, library: x.Library}
	var err error
	if c.first, err = x.First.thread(); err != nil {
		return nil, err
	}
	for i := range x.Threads {
		t, err := x.Threads[i].thread()
		if err != nil {
			return nil, err
		}
		c.threads = append(c.threads, t)
	}
	c.keeper, err = keepStarted(func() (int, error) {
		pid, err := launch()
		if err != nil {
			return 0, err
		}
		if err := s.restore(pid, files); err != nil {
			return 0, errors.Join(err, kill(pid))
		}
		return pid, nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// loader gives a process with one stopped thread the state of a file.
type loader struct {
	*Saved
	pid    int
	files  Files
	memory *ptrace.Memory
	caller *ptrace.Caller
}

func (s *Saved) restore(pid int, files Files) (err error) {
	x := loader{Saved: s, pid: pid, files: files}
	if x.memory, err = ptrace.OpenMemory(pid); err != nil {
		return err
	}
	defer x.memory.Close()
	at, err := ptrace.SystemCall(pid, unix.SYS_MMAP, page, tracee.PageSize, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0)
	if err == nil && at != page {
		err = errors.New("checkpoint: there is no room in the process for a page")
	}
	if err != nil {
		return err
	}
	if _, err := x.memory.WriteAt(pageCode(), page); err != nil {
		return err
	}
	if x.caller, err = ptrace.NewCaller(pid, page); err != nil {
		return err
	}
	for _, step := range []func() error{x.empty, x.setBreak, x.mapAreas, x.writePages, x.advise, x.openData, x.setActions, x.checkAreas} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// empty removes the mappings of the started program, but for those that the kernel has made, which have to be the saved ones.
func (x *loader) empty() error {
	list, err := procmaps.Read(x.pid)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	kept := 0
	for i := range list {
		m := &list[i]
		at := slices.IndexFunc(x.state.Areas, func(a savedArea) bool { return a.Kernel != "" && a.Kernel == m.Path })
		switch {
		case m.Path == vsyscallName, m.Start == page:
		case at < 0 && fromStart(m.Path):
			return fmt.Errorf("checkpoint: the saved process had no %s", m.Path)
		case at < 0:
			if _, err := x.caller.Call(unix.SYS_MUNMAP, uint64(m.Start), uint64(m.End-m.Start)); err != nil {
				return err
			}
		default:
			kept++
			a := &x.state.Areas[at]
			if uint64(m.End) != a.End || m.Path != stackName && uint64(m.Start) != a.Start || uint64(m.Start) < a.Start {
				return fmt.Errorf("checkpoint: %s is at another place", m.Path)
			}
			if m.Path == stackName && uint64(m.Start) > a.Start {
				// A write below lets the stack grow.
				if _, err := x.caller.Call(unix.SYS_PRCTL, unix.PR_GET_TID_ADDRESS, a.Start); err != nil {
					return err
				}
				if _, err := x.memory.WriteAt(make([]byte, 8), int64(a.Start)); err != nil {
					return err
				}
			}
		}
	}
	for _, a := range x.state.Areas {
		if a.Kernel != "" {
			kept--
		}
	}
	if kept != 0 {
		return errors.New("checkpoint: a started program has other mappings than the saved process")
	}
	return nil
}

// setBreak sets the end of the program's data. Its mappings are made later, as the others are.
func (x *loader) setBreak() error {
	first, err := x.caller.Call(unix.SYS_BRK, 0)
	if err != nil {
		return err
	}
	if first > x.state.Break {
		return damaged("its data ends at %#x, before its beginning", x.state.Break)
	}
	set, err := x.caller.Call(unix.SYS_BRK, x.state.Break)
	if err != nil {
		return err
	}
	if set != x.state.Break {
		return fmt.Errorf("checkpoint: the data cannot end at %#x", x.state.Break)
	}
	const below = tracee.PageSize - 1
	from, end := (first+below)&^below, (set+below)&^below
	if from == end {
		return nil
	}
	_, err = x.caller.Call(unix.SYS_MUNMAP, from, end-from)
	return err
}

// mapAreas makes the mappings.
func (x *loader) mapAreas() error {
	open := map[mappedFile]uint64{}
	defer func() {
		for _, fd := range open {
			x.caller.Call(unix.SYS_CLOSE, fd)
		}
	}()
	for i := range x.state.Areas {
		a := &x.state.Areas[i]
		if a.Kernel != "" {
			continue
		}
		flags, fd := uint64(unix.MAP_PRIVATE|unix.MAP_FIXED_NOREPLACE), ^uint64(0)
		if a.NoReserve {
			flags |= unix.MAP_NORESERVE
		}
		if a.File == nil {
			flags |= unix.MAP_ANONYMOUS
		} else {
			known := false
			if fd, known = open[*a.File]; !known {
				var err error
				if fd, err = x.open(a.File); err != nil {
					return err
				}
				open[*a.File] = fd
			}
		}
		at, err := x.caller.Call(unix.SYS_MMAP, a.Start, a.Size(), uint64(a.Protection), flags, fd, a.Offset)
		if err != nil {
			return err
		}
		if at != a.Start {
			return fmt.Errorf("checkpoint: there is no room at %#x", a.Start)
		}
	}
	return nil
}

// open opens a file in the process: through the tool's descriptor, so that it is the very file that is compared.
func (x *loader) open(f *mappedFile) (fd uint64, err error) {
	var file *os.File
	switch f.Role {
	case roleImage:
		file = x.files.Image
	case roleData:
		file = x.files.Data
	default:
		if file, err = os.OpenFile(f.Path, os.O_RDONLY|unix.O_NONBLOCK, 0); err != nil {
			return 0, fmt.Errorf("checkpoint: %w", err)
		}
		defer file.Close()
		var info unix.Stat_t
		if err := unix.Fstat(int(file.Fd()), &info); err != nil {
			return 0, fmt.Errorf("checkpoint: %w", err)
		}
		if now, err := identityOf(f.Path, &info); err != nil || *now != *f {
			return 0, fmt.Errorf("checkpoint: %s is not the saved file any more", f.Path)
		}
	}
	if file == nil {
		return 0, damaged("it has a file of the recording mapped, which has none")
	}
	return x.openHere(file)
}

// openHere opens a file of the tool's in the process.
func (x *loader) openHere(file *os.File) (uint64, error) {
	path := fmt.Appendf(nil, "/proc/%d/fd/%d\x00", os.Getpid(), file.Fd())
	if _, err := x.memory.WriteAt(path, page+scratchAt); err != nil {
		return 0, err
	}
	const here = ^uint64(99) // AT_FDCWD
	return x.caller.Call(unix.SYS_OPENAT, here, page+scratchAt, unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// writePages writes the pages, whatever their protection.
func (x *loader) writePages() error {
	at := int64(len(savedMagic))
	data := make([]byte, mostPages*tracee.PageSize)
	for _, p := range x.state.Pages {
		part := data[:p.Count*tracee.PageSize]
		if _, err := x.file.ReadAt(part, at); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		if crc32.Checksum(part, castagnoli) != p.Sum {
			return damaged("the checksum of pages at %#x is another", p.Addr)
		}
		if _, err := x.memory.WriteAt(part, int64(p.Addr)); err != nil {
			return err
		}
		at += int64(len(part))
	}
	return nil
}

// advise gives the kernel the program's advice on the mappings.
func (x *loader) advise() error {
	for i := range x.state.Areas {
		a := &x.state.Areas[i]
		for _, advice := range a.Advice {
			if _, err := x.caller.Call(unix.SYS_MADVISE, a.Start, a.Size(), uint64(advice)); err != nil {
				return err
			}
		}
	}
	return nil
}

// openData opens the recording's file of mapped bytes at the engine's descriptor.
func (x *loader) openData() error {
	if x.state.DataFD < 0 {
		return nil
	}
	if x.files.Data == nil || x.state.DataFD <= 2 {
		return damaged("it has descriptor %d open", x.state.DataFD)
	}
	fd, err := x.openHere(x.files.Data)
	if err != nil || fd == uint64(x.state.DataFD) {
		return err
	}
	if _, err := x.caller.Call(unix.SYS_DUP3, fd, uint64(x.state.DataFD), unix.O_CLOEXEC); err != nil {
		return err
	}
	_, err = x.caller.Call(unix.SYS_CLOSE, fd)
	return err
}

func (x *loader) setActions() error {
	for i, action := range x.state.Actions {
		n := uint64(i + 1)
		if n == uint64(unix.SIGKILL) || n == uint64(unix.SIGSTOP) {
			continue
		}
		if _, err := x.memory.WriteAt(action, page+scratchAt); err != nil {
			return err
		}
		if _, err := x.caller.Call(unix.SYS_RT_SIGACTION, n, page+scratchAt, 0, 8); err != nil {
			return err
		}
	}
	return nil
}

// checkAreas compares the mappings with the saved ones.
func (x *loader) checkAreas() error {
	list, err := procmaps.ReadAreas(x.pid)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	var made []savedArea
	for i := range list {
		if a := &list[i]; a.Path != vsyscallName && a.Start != page {
			s := savedArea{Span: tracee.Span{Start: uint64(a.Start), End: uint64(a.End)}, Protection: protectionOf(a)}
			if a.Inode != 0 {
				s.Offset, s.File = a.Offset, &mappedFile{}
			}
			made = append(made, s)
		}
	}
	got, want := joined(made), joined(x.state.Areas)
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Errorf("checkpoint: the mapping at %#x to %#x is at %#x to %#x", want[i].Start, want[i].End, got[i].Start, got[i].End)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("checkpoint: there are %d mappings, not %d", len(got), len(want))
	}
	return nil
}

// layout is what a process can use of its mappings.
type layout struct {
	tracee.Span
	protection int
	file       bool
	base       uint64 // the address that the file's first byte has, or would have
}

// joined returns the mappings with those joined that follow each other and differ in nothing: the kernel may join them or not.
func joined(areas []savedArea) (list []layout) {
	for i := range areas {
		a := &areas[i]
		x := layout{Span: a.Span, protection: a.Protection}
		if a.File != nil {
			x.file, x.base = true, a.Start-a.Offset
		}
		if n := len(list); n > 0 && list[n-1].End == x.Start && list[n-1].protection == x.protection && list[n-1].file == x.file && list[n-1].base == x.base {
			list[n-1].End = x.End
			continue
		}
		list = append(list, x)
	}
	return list
}

func marshal(about any) (json.RawMessage, error) {
	data, err := json.Marshal(about)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return data, nil
}
