package image

import (
	"debug/elf"
	"sort"

	"diagnose/evidence"
)

// coreMemory is the memory of a core file, and of the mapped objects where
// the core leaves out what cannot have changed.
type coreMemory struct {
	core *elfCore
	// process gives the modules; memory is read before they are known.
	process *Process
}

// ReadMemory implements Memory.
func (m *coreMemory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := m.readPiece(addr+evidence.Addr(done), p[done:])
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// readPiece reads at least one byte, up to a change of the source.
func (m *coreMemory) readPiece(addr evidence.Addr, p []byte) (int, error) {
	loads := m.core.loads
	i := sort.Search(len(loads), func(i int) bool { return loads[i].end() > uint64(addr) })
	if i == len(loads) || uint64(addr) < loads[i].vaddr {
		if i < len(loads) {
			p = clip(p, loads[i].vaddr-uint64(addr))
		}
		return m.outside(addr, p)
	}
	load := &loads[i]
	at := uint64(addr) - load.vaddr
	if at >= load.filesz {
		return m.fromObject(addr, clip(p, load.memsz-at), m.core.dumpsWritten)
	}
	p = clip(p, load.filesz-at)
	data := m.core.contents(addSaturated(load.offset, at), uint64(len(p)))
	if len(data) == 0 {
		if n, err := m.fromObject(addr, p, false); n > 0 {
			return n, err
		}
		return 0, &MemoryError{Addr: addr, Reason: "is past the end of the truncated core"}
	}
	return copyMapped(p, data)
}

func clip(p []byte, n uint64) []byte { return p[:min(uint64(len(p)), n)] }

// outside reads addresses that no segment covers, such as files that the core
// does not list as segments.
func (m *coreMemory) outside(addr evidence.Addr, p []byte) (int, error) {
	if mapping := m.process.MappingAt(addr); mapping != nil {
		return m.fromObject(addr, clip(p, uint64(mapping.End-addr)), false)
	}
	if m.core.headersCut > 0 {
		return 0, &MemoryError{Addr: addr, Reason: "may lie in a mapping that the truncated core does not list"}
	}
	return 0, &MemoryError{Addr: addr, Reason: "is not mapped", Unmapped: true}
}

// fromObject reads what the process mapped from an object and has not
// changed. Writable segments, and those written before they were made
// read-only (RELRO), are taken from the file only if unchanged says that the
// core would hold them had they been written.
func (m *coreMemory) fromObject(addr evidence.Addr, p []byte, unchanged bool) (int, error) {
	missing := &MemoryError{Addr: addr, Reason: "is not in the core"}
	module := m.process.ModuleAt(addr)
	if module == nil {
		return 0, missing
	}
	if module.Object == nil {
		missing.Reason = "is not in the core, and no matching file for " + module.name() + " was found"
		return 0, missing
	}
	mapping := m.process.MappingAt(addr)
	if mapping == nil || !unchanged && (mapping.Writable() || !module.keeps(addr)) {
		return 0, missing
	}
	if mapping.file() {
		return module.Object.ReadOffset(clip(p, uint64(mapping.End-addr)), mapping.Offset+uint64(addr-mapping.Start))
	}
	return module.Object.ReadAddr(p, module.LinkAddr(addr))
}

// keeps reports whether the page of addr is the same as in the object's file:
// its segments are never writable, not even during relocation.
func (m *Module) keeps(addr evidence.Addr) bool {
	page := pageDown(m.LinkAddr(addr))
	held := false
	for _, s := range m.Object.Segments() {
		if page+pageSize <= pageDown(s.Vaddr) || page >= s.Vaddr+s.Memsz {
			continue
		}
		if elf.ProgFlag(s.Flags)&elf.PF_W != 0 {
			return false
		}
		held = held || page < s.Vaddr+s.Filesz
	}
	return held
}

// findDumpsWritten sets dumpsWritten if the core holds writable anonymous
// memory: then it holds all memory that the process has written. The kernel's
// filter has one bit for anonymous memory and for written private file
// mappings, and leaves out private file mappings that were never written
// (vma_dump_size in fs/coredump.c, core(5)).
func (c *elfCore) findDumpsWritten(mappings []Mapping) {
	next := 0
	for i := range c.loads {
		l := &c.loads[i]
		for next < len(mappings) && uint64(mappings[next].End) <= l.vaddr {
			next++
		}
		if next == len(mappings) {
			return
		}
		if mappings[next].Path == "" && mappings[next].Writable() && l.filesz > 0 && l.filesz == l.memsz {
			c.dumpsWritten = true
			return
		}
	}
}

// inCore returns how many of the bytes from start to end the core holds.
func (c *elfCore) inCore(start, end uint64) uint64 {
	i := sort.Search(len(c.loads), func(i int) bool { return c.loads[i].end() > start })
	var held uint64
	for ; i < len(c.loads) && c.loads[i].vaddr < end; i++ {
		l := &c.loads[i]
		present := uint64(len(c.contents(l.offset, l.filesz)))
		low, high := max(start, l.vaddr), min(end, l.vaddr+present)
		if low < high {
			held += high - low
		}
	}
	return held
}
