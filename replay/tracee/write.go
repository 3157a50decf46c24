package tracee

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
)

// MapNear maps memory within reach of jumps from pc and returns its address, or
// patch.ErrImpossible.
func (p *Process) MapNear(t *Thread, pc, size uint64) (uint64, error) {
	maps, err := ReadMaps(p.PID)
	if err != nil {
		return 0, err
	}
	const step, steps = 256 << 20, 7 // up to 1.75 GiB: displacements have 31 bits
	for i := range int64(2 * steps) {
		by := (steps - i/2) * step // far from where the program's mappings grow
		if i%2 != 0 {
			by = -by
		}
		at := (pc + uint64(by)) &^ (PageSize - 1)
		if at < 1<<16 || at+size >= 1<<47 || maps.Overlap(at-PageSize, at+size+PageSize) {
			continue
		}
		result, err := ptrace.SystemCall(t.TID, unix.SYS_MMAP, at, size,
			unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0)
		if err != nil {
			return 0, err
		}
		if uint64(result) == at {
			return at, nil
		}
	}
	return 0, patch.ErrImpossible
}

// MapShared maps a file where there is room, through a stopped thread.
func (p *Process) MapShared(t *Thread, near uint64, path string, size uint64) (uint64, error) {
	at, err := p.MapNear(t, near, size)
	if err != nil {
		return 0, err
	}
	p.Mapped = append(p.Mapped, Span{at, at + size})
	if _, err := p.Memory.WriteAt(append([]byte(path), 0), int64(at)); err != nil {
		return 0, err
	}
	call := func(what string, number uint64, args ...uint64) (uint64, error) {
		result, err := ptrace.SystemCall(t.TID, number, args...)
		if failure := ptrace.ResultError(result); err == nil && failure != nil {
			err = fmt.Errorf("replay: %s in the process: %w", what, failure)
		}
		return uint64(result), err
	}
	fd, err := call("open", unix.SYS_OPEN, at, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if _, err := call("mmap", unix.SYS_MMAP, at, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED, fd, 0); err != nil {
		return 0, err
	}
	_, err = call("close", unix.SYS_CLOSE, fd)
	return at, err
}

// InLibrary reports whether a pc is in the recording library.
func (p *Process) InLibrary(pc uint64) (bool, error) {
	if p.Library == nil {
		maps, err := ReadMaps(p.PID)
		if err != nil {
			return false, err
		}
		for i := range maps {
			if m := &maps[i]; m.Path == p.LibraryPath && m.Perms[2] == 'x' {
				p.Library = append(p.Library, m.Span)
			}
		}
	}
	for _, x := range p.Library {
		if pc >= x.Start && pc < x.End {
			return true, nil
		}
	}
	return false, nil
}

// holds reports whether these bytes are at an address.
func (p *Process) holds(at uint64, want ...byte) bool {
	code := make([]byte, len(want))
	_, err := p.Memory.ReadAt(code, int64(at))
	return err == nil && bytes.Equal(code, want)
}

// isSite reports whether the instruction that the patch replaces is there.
func (p *Process) isSite(site *agent.RawSitePatch) bool {
	switch site.Kind {
	case agent.PatchTSCTrap, agent.PatchCode, agent.PatchAddress, agent.PatchOperation:
		return true // nothing is replaced there, or it is with the window before it
	case agent.PatchAtomic:
		return p.isWindow(site)
	}
	if site.Kind != agent.PatchTSC {
		return p.holds(site.Resume-2, 0x0f, 0x05)
	}
	return p.holds(site.Resume-2, 0x0f, 0x31) || p.holds(site.Resume-3, 0x0f, 0x01, 0xf9)
}

// isWindow reports whether the program's own bytes are in a window with atomic instructions.
func (p *Process) isWindow(site *agent.RawSitePatch) bool {
	const most = 64
	if site.Length > most {
		return false
	}
	code := make([]byte, site.Length)
	_, err := p.Memory.ReadAt(code, int64(site.At))
	return err == nil && crc32.ChecksumIEEE(code) == site.After
}

// mapSites maps memory for a table that is larger than the engine's.
func (p *Process) mapSites(at, length uint64) error {
	const step, page = 16 << 20, 4096
	start, end := (at+page-1)/page*page, (at+length+step-1)/step*step
	got, err := ptrace.SystemCall(p.PID, unix.SYS_MMAP, start, end-start, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0)
	if err != nil {
		return err
	}
	if got < 0 && got != -int64(unix.EEXIST) {
		return fmt.Errorf("replay: memory for the patch table: %w", unix.Errno(-got))
	}
	return nil
}

// WriteSites appends to the patch table, at the control's count, the recording's patches for
// objects that are loaded now. The recording has them in the order in which the objects were
// loaded. The first one whose code is not there, or is another object's, ends them.
func (p *Process) WriteSites(sites []byte, control *agent.RawControl, from uint32) error {
	maps, err := ReadMaps(p.PID)
	if err != nil {
		return err
	}
	count := int(from)
	for ; (count+1)*SiteSize <= len(sites); count++ {
		var site agent.RawSitePatch
		if _, err := binary.Decode(sites[count*SiteSize:], binary.LittleEndian, &site); err != nil {
			return err
		}
		if !maps.Executable(site.At) || !p.isSite(&site) {
			break
		}
	}
	table := sites[int(from)*SiteSize : count*SiteSize]
	control.PatchCount = uint32(count)
	if len(table) == 0 {
		return nil
	}
	at := agent.EngineSites + uint64(from)*SiteSize
	if _, err := p.Memory.WriteAt(table, int64(at)); err == nil {
		return nil
	}
	if err := p.mapSites(at, uint64(len(table))); err != nil {
		return err
	}
	_, err = p.Memory.WriteAt(table, int64(at))
	return err
}

// StopAt asks the engine for DG_TRAP_MOMENT.
func (p *Process) StopAt(thread uint32, ordinal uint64) error {
	control, err := p.ReadControl()
	if err != nil {
		return err
	}
	control.StopThread, control.StopAt = thread, ordinal
	return p.WriteControl(control)
}
