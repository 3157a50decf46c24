package replay

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
)

// mapNear maps memory within reach of jumps from pc and returns its address, or patch.ErrImpossible.
func (p *process) mapNear(t *thread, pc, size uint64) (uint64, error) {
	maps, err := readMaps(p.pid)
	if err != nil {
		return 0, err
	}
	const step, steps = 256 << 20, 7 // up to 1.75 GiB: displacements have 31 bits
	for i := range int64(2 * steps) {
		by := (steps - i/2) * step // far from where the program's mappings grow
		if i%2 != 0 {
			by = -by
		}
		at := (pc + uint64(by)) &^ (pageSize - 1)
		if at < 1<<16 || at+size >= 1<<47 || maps.overlaps(at-pageSize, at+size+pageSize) {
			continue
		}
		result, err := ptrace.SystemCall(t.tid, unix.SYS_MMAP, at, size,
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

// mapShared maps a file where there is room, through a stopped thread.
func (p *process) mapShared(t *thread, near uint64, path string, size uint64) (uint64, error) {
	at, err := p.mapNear(t, near, size)
	if err != nil {
		return 0, err
	}
	p.mapped = append(p.mapped, span{at, at + size})
	if _, err := p.memory.WriteAt(append([]byte(path), 0), int64(at)); err != nil {
		return 0, err
	}
	call := func(what string, number uint64, args ...uint64) (uint64, error) {
		result, err := ptrace.SystemCall(t.tid, number, args...)
		if err == nil && result < 0 && result > -4096 {
			err = fmt.Errorf("replay: %s in the process: %w", what, unix.Errno(-result))
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

// inLibrary reports whether a pc is in the recording library.
func (p *process) inLibrary(pc uint64) (bool, error) {
	if p.library == nil {
		maps, err := readMaps(p.pid)
		if err != nil {
			return false, err
		}
		for i := range maps {
			if m := &maps[i]; m.path == p.libraryPath && m.perms[2] == 'x' {
				p.library = append(p.library, m.span)
			}
		}
	}
	for _, x := range p.library {
		if pc >= x.start && pc < x.end {
			return true, nil
		}
	}
	return false, nil
}

// holds reports whether these bytes are at an address.
func (p *process) holds(at uint64, want ...byte) bool {
	code := make([]byte, len(want))
	_, err := p.memory.ReadAt(code, int64(at))
	return err == nil && bytes.Equal(code, want)
}

// isSite reports whether the instruction that the patch replaces is there.
func (p *process) isSite(site *agent.RawSitePatch) bool {
	if site.Kind == agent.PatchTSCTrap {
		return true // it is not replaced
	}
	if site.Kind != agent.PatchTSC {
		return p.holds(site.Resume-2, 0x0f, 0x05)
	}
	return p.holds(site.Resume-2, 0x0f, 0x31) || p.holds(site.Resume-3, 0x0f, 0x01, 0xf9)
}

// mapSites maps memory for a table that is larger than the engine's.
func (p *process) mapSites(at, length uint64) error {
	const step, page = 16 << 20, 4096
	start, end := (at+page-1)/page*page, (at+length+step-1)/step*step
	got, err := ptrace.SystemCall(p.pid, unix.SYS_MMAP, start, end-start, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0)
	if err != nil {
		return err
	}
	if got < 0 && got != -int64(unix.EEXIST) {
		return fmt.Errorf("replay: memory for the patch table: %w", unix.Errno(-got))
	}
	return nil
}

// writeSites appends to the patch table, at the control's count, the recording's patches for
// objects that are loaded now. The recording has them in the order in which the objects were
// loaded. The first one whose code is not there, or is another object's, ends them.
func (p *process) writeSites(sites []byte, control *agent.RawControl, from uint32) error {
	maps, err := readMaps(p.pid)
	if err != nil {
		return err
	}
	count := int(from)
	for ; (count+1)*siteSize <= len(sites); count++ {
		var site agent.RawSitePatch
		if _, err := binary.Decode(sites[count*siteSize:], binary.LittleEndian, &site); err != nil {
			return err
		}
		if !maps.executable(site.At) || !p.isSite(&site) {
			break
		}
	}
	table := sites[int(from)*siteSize : count*siteSize]
	control.PatchCount = uint32(count)
	if len(table) == 0 {
		return nil
	}
	at := agent.EngineSites + uint64(from)*siteSize
	if _, err := p.memory.WriteAt(table, int64(at)); err == nil {
		return nil
	}
	if err := p.mapSites(at, uint64(len(table))); err != nil {
		return err
	}
	_, err = p.memory.WriteAt(table, int64(at))
	return err
}

// stopAt asks the engine for DG_TRAP_MOMENT.
func (p *process) stopAt(thread uint32, ordinal uint64) error {
	control, err := p.readControl()
	if err != nil {
		return err
	}
	control.StopThread, control.StopAt = thread, ordinal
	return p.writeStruct(p.control, control)
}
