package image

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
)

const (
	// mostLinks bounds the dynamic linker's list, mostDynamic an object's
	// dynamic section; in corrupt memory the list may loop.
	mostLinks   = mostModules
	mostDynamic = 1024
	longestPath = 4096
)

// linkEntry is a struct link_map (link.h).
type linkEntry struct {
	node    evidence.Addr
	bias    uint64
	name    string
	dynamic evidence.Addr
}

// linkMap walks the dynamic linker's list of loaded objects, in load order,
// as far as memory goes: PT_DYNAMIC of the executable, DT_DEBUG, r_debug.
func linkMap(memory Memory, exe *Module) []linkEntry {
	if exe == nil || exe.image == nil || exe.image.dynamic == 0 {
		return nil
	}
	debug, ok := dynamicValue(memory, evidence.Addr(exe.Bias+exe.image.dynamic), uint64(elf.DT_DEBUG))
	if !ok || debug == 0 {
		return nil
	}
	const rMap = 8 // offset of r_map in struct r_debug
	first, err := Uint64(memory, evidence.Addr(debug+rMap))
	if err != nil {
		return nil
	}
	return walkLinks(memory, evidence.Addr(first))
}

// walkLinks follows l_next from a struct link_map.
func walkLinks(m Memory, node evidence.Addr) []linkEntry {
	var list []linkEntry
	seen := map[evidence.Addr]bool{}
	for node != 0 && !seen[node] && len(list) < mostLinks {
		seen[node] = true
		e, text, next, err := readLink(m, node)
		if err != nil {
			return list
		}
		if name, whole, err := CString(m, text, longestPath); err == nil && whole {
			e.name = name
		}
		list = append(list, e)
		node = next
	}
	return list
}

// readLink reads one struct link_map. name and next are where its name and the next one are.
func readLink(m Memory, node evidence.Addr) (e linkEntry, name, next evidence.Addr, err error) {
	var b [32]byte
	if _, err := m.ReadMemory(node, b[:]); err != nil {
		return e, 0, 0, fmt.Errorf("link_map at %v: %w", node, err)
	}
	le := binary.LittleEndian
	e = linkEntry{node: node, bias: le.Uint64(b[:]), dynamic: evidence.Addr(le.Uint64(b[16:]))}
	return e, evidence.Addr(le.Uint64(b[8:])), evidence.Addr(le.Uint64(b[24:])), nil
}

// dynamicValue looks up an entry of a dynamic section.
func dynamicValue(m Memory, addr evidence.Addr, tag uint64) (uint64, bool) {
	value, found, err := findDynamic(m, addr, tag)
	return value, found && err == nil
}

// findDynamic is dynamicValue where memory that cannot be read is an error.
func findDynamic(m Memory, addr evidence.Addr, tag uint64) (value uint64, found bool, err error) {
	for i := range mostDynamic {
		var b [16]byte
		if _, err := m.ReadMemory(addr+evidence.Addr(16*i), b[:]); err != nil {
			return 0, false, fmt.Errorf("dynamic section at %v: %w", addr, err)
		}
		switch binary.LittleEndian.Uint64(b[:]) {
		case tag:
			return binary.LittleEndian.Uint64(b[8:]), true, nil
		case uint64(elf.DT_NULL):
			return 0, false, nil
		}
	}
	return 0, false, fmt.Errorf("dynamic section at %v: it has more than %d entries", addr, mostDynamic)
}

// orderModules fills loadOrder, and the thread-local indices, which the dynamic
// linker assigns in load order to objects with a PT_TLS segment.
func (p *Process) orderModules(links []linkEntry) {
	nodes := map[*Module]evidence.Addr{}
	placed := map[*Module]bool{}
	for _, e := range links {
		m := p.ModuleAt(e.dynamic)
		if m == nil || placed[m] {
			continue
		}
		placed[m] = true
		nodes[m] = e.node
		p.loadOrder = append(p.loadOrder, m)
	}
	if p.Exe != nil && !placed[p.Exe] {
		p.loadOrder = append([]*Module{p.Exe}, p.loadOrder...)
		placed[p.Exe] = true
	}
	index := 0
	for _, m := range p.loadOrder {
		if m.image != nil && m.image.tls != nil {
			index++
			m.TLSID = index
		}
	}
	for _, m := range p.Modules {
		if !placed[m] {
			p.loadOrder = append(p.loadOrder, m)
		}
	}
	p.threadLocals = threadLocals{memory: p.memory, exe: p.Exe, modules: p.loadOrder, nodes: nodes}
}
