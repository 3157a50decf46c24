package image

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// unmapped describes an address that no mapping holds by its neighbours.
func (d *placeDescription) unmapped() {
	place := &d.place
	if d.belowMainStack() {
		return
	}
	place.Class = evidence.PlaceUnmapped
	text := "not mapped"
	i := d.process.Mappings.endingPast(place.Addr)
	if i > 0 {
		m := &d.process.Mappings[i-1]
		text += fmt.Sprintf(", %s past %s", byteCount(uint64(place.Addr-m.End)), d.mappingName(m))
	}
	if i < len(d.process.Mappings) && uint64(d.process.Mappings[i].Start) < canonicalEnd {
		m := &d.process.Mappings[i]
		text += fmt.Sprintf(", %s before %s", byteCount(uint64(m.Start-place.Addr)), d.mappingName(m))
	}
	place.Text = text
	if uint64(place.Addr)%pageSize == 16 && d.nearMappings(place.Addr, i) {
		place.Class, place.Proof = evidence.PlaceFreedMapping, evidence.Inferred
		place.Text = "probably a large block that was freed: 16 bytes into a page, where malloc's mapped blocks begin; " + text
	}
}

// belowMainStack recognises the gap that the kernel keeps below the first
// thread's stack. A stack that overflows reaches this gap.
func (d *placeDescription) belowMainStack() bool {
	place := &d.place
	for _, s := range d.process.memoryRegions().stacks {
		if !s.main {
			continue
		}
		m := &d.process.Mappings[s.mapping]
		limit, proof := d.process.stackLimit, evidence.FromCore
		if limit == 0 || limit > largestStackLimit {
			limit, proof = defaultStackLimit, evidence.Inferred
		}
		size := max(m.size(), limit)
		nothingBetween := d.process.Mappings.endingPast(place.Addr) == s.mapping
		if !nothingBetween || uint64(m.End)-uint64(place.Addr) > size+stackGuardGap {
			return false
		}
		place.Proof = proof
		place.Class, place.TID = evidence.PlaceStackGuard, s.thread.Ref.TID
		place.Text = fmt.Sprintf("%s below the stack of thread %d, which is %#x bytes large", byteCount(uint64(m.Start-place.Addr)),
			s.thread.Ref.Number, m.size())
		return true
	}
	return false
}

// nearMappings reports whether the kernel could have placed a mapping at
// addr: in its mmap area, which grows down from the libraries.
func (d *placeDescription) nearMappings(addr evidence.Addr, behind int) bool {
	const near = 1 << 32
	const mmapArea = 0x7000_0000_0000 // TASK_UNMAPPED_BASE's neighbourhood with a top-down layout
	if addr < mmapArea || behind == len(d.process.Mappings) {
		return false
	}
	return d.process.Mappings[behind].Start-addr < near
}

// mappingName names a mapping in a phrase.
func (d *placeDescription) mappingName(m *Mapping) string {
	part := "data"
	switch {
	case m.Executable():
		part = "code"
	case !m.Writable():
		part = "read-only data"
	}
	regions := d.process.memoryRegions()
	for _, s := range regions.stacks {
		if &d.process.Mappings[s.mapping] == m && s.whole {
			return fmt.Sprintf("the stack of thread %d", s.thread.Ref.Number)
		}
	}
	switch module := d.process.ModuleAt(m.Start); {
	case module != nil:
		return module.name() + "'s " + part
	case m.Start >= regions.heap.start && m.End <= regions.heap.end:
		return "the heap"
	case m.Path != "":
		return wording.Name(m.Path)
	case m.Perms == "---":
		return "an inaccessible mapping"
	}
	return "anonymous memory"
}
