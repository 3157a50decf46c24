package corefile

import (
	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/internal/procmaps"
)

// Touched returns the parts of a process's private writable memory that may be other than zero:
// whole pages, in ascending order. The memory of the recording engine and of the heap, and the
// mappings of this library, are left out.
func Touched(pid int, library string) ([]Range, error) {
	maps, err := procmaps.Read(pid)
	if err != nil {
		return nil, err
	}
	var list []Range
	own := []Range{{agent.EngineBase, agent.EngineStacks}}
	for i := range evidence.Addr(agent.Tries) {
		base := agent.Base + i*agent.Step
		own = append(own, Range{base, base + agent.OffObjects})
	}
	for _, m := range maps {
		r := Range{m.Start, m.End}
		if m.Perms[:2] != "rw" || m.Perms[3] != 'p' || library != "" && m.Path == library || within(r, own) {
			continue
		}
		touched, err := touchedRanges(pid, r)
		if err != nil {
			return nil, err
		}
		list = append(list, touched...)
	}
	return list, nil
}

// Part is the part of a recorded process's memory that an address belongs to.
type Part int

// The parts, by how likely threads are to communicate through them without an event.
const (
	PartProgram Part = iota // the program's own variables
	PartHeap
	PartOther // libraries' variables, the first thread's stack, mappings
	PartStack // of the other threads
)

// PartOf returns the part by the places where the engine puts programs' memory.
func PartOf(addr evidence.Addr) Part {
	const mapped = 0x700000000000 // arch_get_mmap_base: libraries and stack, without randomisation
	switch {
	case addr >= agent.EngineStacks && addr < agent.EngineEnd:
		return PartStack
	case addr >= agent.Base && addr < agent.EngineStacks:
		return PartHeap
	case addr >= mapped:
		return PartOther
	}
	return PartProgram
}
