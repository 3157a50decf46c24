package recorder

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image/object"
	"diagnose/replay/corefile"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
)

// Points at instructions (struct dg_point_site): the tracer finds them, and hides the engine's
// changes for them. A thread in a stub is in transit. A fault of the instruction in the stub is
// delivered to the program with the instruction's own address. A core has neither jumps nor
// stubs, nor does a replay.

// pointTable is the table of points for code at known addresses.
type pointTable struct {
	raw    []byte
	count  int
	all    int
	limits []string
}

// knownPoints has point tables by codeKey.
var knownPoints sync.Map

const pointSize = int(unsafe.Sizeof(agent.RawPointSite{}))

// addPoints gives a process that hunts the points in its code that it does not have yet.
func (r *recording) addPoints(tid int, memory *ptrace.Memory) error {
	if r.hunt == nil || !r.hunt.Globals {
		return nil
	}
	list, err := readMappings(tid)
	if err != nil {
		return err
	}
	var table *pointTable
	key := codeKey(list)
	if known, ok := knownPoints.Load(key); ok && key != "" && r.pointsIn == nil {
		table = known.(*pointTable)
	} else if table, err = r.points(tid, list, memory); err != nil {
		return err
	} else if key != "" && r.pointsIn == nil {
		knownPoints.Store(key, table)
	}
	for _, text := range table.limits {
		r.limit("hunt", text)
	}
	if r.pointsIn == nil {
		r.pointsIn = map[uint64]bool{}
	}
	for i := range list {
		if list[i].Permissions[2] == 'x' {
			r.pointsIn[uint64(list[i].Start)] = true
		}
	}
	return r.tellPoints(memory, table)
}

// points makes the table for the new mappings.
func (r *recording) points(tid int, list []record.Mapping, memory *ptrace.Memory) (*pointTable, error) {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", tid))
	if err != nil {
		return nil, err
	}
	table := &pointTable{}
	for i := range list {
		m := &list[i]
		if m.Permissions[2] != 'x' || r.pointsIn[uint64(m.Start)] || r.isAgent(m) || string(m.Path) != exe && !ownCode(string(m.Path)) {
			continue
		}
		if err := table.addMapping(m, memory); err != nil {
			table.limits = append(table.limits, fmt.Sprintf("threads are not preempted where %s accesses its variables: %v", m.Path, err))
		}
	}
	return table, nil
}

// ownCode reports whether a file is the program's own rather than a system library. The
// variables of those are protected by their own locks.
func ownCode(path string) bool {
	if !strings.HasPrefix(path, "/") {
		return false
	}
	for _, system := range []string{"/lib/", "/lib64/", "/lib32/", "/usr/lib/", "/usr/lib64/", "/usr/lib32/", "/usr/libexec/"} {
		if strings.HasPrefix(path, system) {
			return false
		}
	}
	return true
}

// addMapping adds an object's code.
func (t *pointTable) addMapping(m *record.Mapping, memory *ptrace.Memory) error {
	f, err := object.Open(string(m.Path))
	if err != nil {
		return err
	}
	defer f.Close()
	bias, ok := loadBias(codeSegments(f), m)
	if !ok {
		return nil
	}
	found, err := findGlobals(f)
	if err != nil {
		return err
	}
	patched, err := CachedSites(f)
	if err != nil {
		return err
	}
	t.all += found.all
	text := make([]byte, m.End-m.Start)
	if _, err := memory.ReadAt(text, int64(m.Start)); err != nil {
		return err
	}
	for _, s := range found.apart(patched.Sites) {
		at := s.at + bias - uint64(m.Start)
		if s.at+bias < uint64(m.Start) || at+uint64(len(s.code)) > uint64(len(text)) || !bytes.Equal(text[at:at+uint64(len(s.code))], s.code) {
			continue // the memory differs from the file
		}
		raw := s.raw(bias)
		if t.raw, err = binary.Append(t.raw, binary.LittleEndian, &raw); err != nil {
			return err
		}
		t.count++
	}
	return nil
}

// tellPoints appends a table to the process's.
func (r *recording) tellPoints(memory *ptrace.Memory, t *pointTable) error {
	const at = agent.EngineHunt + uint64(unsafe.Offsetof(agent.RawHunt{}.Sites))
	word, err := memory.Word(at)
	if err != nil {
		return fmt.Errorf("its points: %w", err)
	}
	r.pointsOf += t.all
	sites, done := uint32(word), word>>32
	count := min(t.count, agent.HuntSites-int(sites))
	if count <= 0 {
		return nil
	}
	if _, err := memory.WriteAt(t.raw[:count*pointSize], int64(agent.EngineHunt+agent.HuntSitesAt)+int64(sites)*int64(pointSize)); err != nil {
		return fmt.Errorf("its points: %w", err)
	}
	if err := memory.SetWord(at, done<<32|uint64(sites+uint32(count))); err != nil {
		return fmt.Errorf("its points: %w", err)
	}
	return nil
}

// stubs are the ranges of the engine's stubs of points.
func (r *recording) stubs() []corefile.Range {
	if r.hunt == nil || !r.hunt.Globals {
		return nil
	}
	raw, err := readHunt(r.memory)
	if err != nil {
		return nil
	}
	var list []corefile.Range
	for i := range min(raw.Areas, agent.HuntAreas) {
		list = append(list, corefile.Range{Start: evidence.Addr(raw.AreaLow[i]), End: evidence.Addr(raw.AreaHigh[i])})
	}
	return list
}

// inStub reports whether a pc is in the stub of a point.
func (r *recording) inStub(pc uint64) bool {
	for _, s := range r.stubs() {
		if pc >= uint64(s.Start) && pc < uint64(s.End) {
			return true
		}
	}
	return false
}

// eachPoint calls f with the points that have their jumps.
func (r *recording) eachPoint(f func(*agent.RawPointSite) (more bool, err error)) error {
	raw, err := readHunt(r.memory)
	if err != nil {
		return err
	}
	table := make([]byte, int(min(raw.SitesDone, agent.HuntSites))*pointSize)
	if _, err := r.memory.ReadAt(table, agent.EngineHunt+agent.HuntSitesAt); err != nil {
		return fmt.Errorf("its points: %w", err)
	}
	for ; len(table) > 0; table = table[pointSize:] {
		var p agent.RawPointSite
		if _, err := binary.Decode(table[:pointSize], binary.LittleEndian, &p); err != nil {
			return err
		}
		if p.Insn == 0 || int(p.Length) > len(p.Bytes) {
			continue
		}
		if more, err := f(&p); err != nil || !more {
			return err
		}
	}
	return nil
}

// atOwn moves the pc of a thread from an instruction in a stub to that of the program.
func (r *recording) atOwn(tid int, regs *ptrace.Registers) error {
	if !r.inStub(regs.Rip) {
		return nil
	}
	return r.eachPoint(func(p *agent.RawPointSite) (bool, error) {
		if regs.Rip != p.Insn {
			return true, nil
		}
		regs.Rip, regs.Orig_rax = p.At, ^uint64(0)
		return false, ptrace.SetRegisters(tid, regs)
	})
}

// hidePoints restores the program's own code, in a stopped process that is about to end.
func (r *recording) hidePoints() error {
	if len(r.stubs()) == 0 {
		return nil
	}
	return r.eachPoint(func(p *agent.RawPointSite) (bool, error) {
		_, err := r.memory.WriteAt(p.Bytes[:p.Length], int64(p.At))
		return true, err
	})
}
