package sites

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
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
	"diagnose/replay/record/eventlog"
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

// points are the points at instructions of a process.
type Points struct {
	Memory *ptrace.Memory // of the process; nil: it has no points
	// in are the code mappings whose points the engine knows. of is how many instructions could
	// have been points.
	in map[uint64]bool
	Of int
	// Most is the size of code, in bytes, that an object with points has at most; 0: any.
	Most uint64
}

// clone returns the points of a process that is a copy of this one.
func (p *Points) Clone(memory *ptrace.Memory) Points {
	return Points{Memory: memory, in: maps.Clone(p.in), Of: p.Of, Most: p.Most}
}

// addPoints gives a process the points in its code that it does not have yet, except in the
// library of the engine. It returns the limits of that.
func (p *Points) Add(tid int, memory *ptrace.Memory, library record.File) (limits []eventlog.Limit, err error) {
	if p.Memory == nil {
		return nil, nil
	}
	list, err := Mappings(tid)
	if err != nil {
		return nil, err
	}
	var table *pointTable
	key := codeKey(list)
	if known, ok := knownPoints.Load(key); ok && key != "" && p.in == nil {
		table = known.(*pointTable)
	} else if table, err = p.table(tid, list, memory, library); err != nil {
		return nil, err
	} else if key != "" && p.in == nil {
		knownPoints.Store(key, table)
	}
	for _, text := range table.limits {
		limits = append(limits, eventlog.Limit{Kind: "hunt", Text: text})
	}
	if p.in == nil {
		p.in = map[uint64]bool{}
	}
	for i := range list {
		if list[i].Permissions[2] == 'x' {
			p.in[uint64(list[i].Start)] = true
		}
	}
	return limits, p.tellPoints(memory, table)
}

// table makes the table for the new mappings.
func (p *Points) table(tid int, list []record.Mapping, memory *ptrace.Memory, library record.File) (*pointTable, error) {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", tid))
	if err != nil {
		return nil, err
	}
	table := &pointTable{}
	for i := range list {
		m := &list[i]
		if m.Permissions[2] != 'x' || p.in[uint64(m.Start)] || isFile(m, library) || string(m.Path) != exe && !ownCode(string(m.Path)) {
			continue
		}
		if err := table.addMapping(m, memory, p.Most); err != nil {
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

// addMapping adds an object's code, unless the object has more than most bytes of code.
func (t *pointTable) addMapping(m *record.Mapping, memory *ptrace.Memory, most uint64) error {
	f, err := object.Open(string(m.Path))
	if err != nil {
		return err
	}
	defer f.Close()
	if most > 0 && codeSize(f) > most {
		return nil
	}
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
func (p *Points) tellPoints(memory *ptrace.Memory, t *pointTable) error {
	const at = agent.EngineHunt + uint64(unsafe.Offsetof(agent.RawHunt{}.Sites))
	word, err := memory.Word(at)
	if err != nil {
		return fmt.Errorf("its points: %w", err)
	}
	p.Of += t.all
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
func (p *Points) Stubs() []corefile.Range {
	if p.Memory == nil {
		return nil
	}
	raw, err := ReadHunt(p.Memory)
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
func (p *Points) InStub(pc uint64) bool {
	for _, s := range p.Stubs() {
		if pc >= uint64(s.Start) && pc < uint64(s.End) {
			return true
		}
	}
	return false
}

// eachPoint calls f with the points that have their jumps.
func (p *Points) eachPoint(f func(*agent.RawPointSite) (more bool, err error)) error {
	raw, err := ReadHunt(p.Memory)
	if err != nil {
		return err
	}
	table := make([]byte, int(min(raw.SitesDone, agent.HuntSites))*pointSize)
	if _, err := p.Memory.ReadAt(table, agent.EngineHunt+agent.HuntSitesAt); err != nil {
		return fmt.Errorf("its points: %w", err)
	}
	for ; len(table) > 0; table = table[pointSize:] {
		var site agent.RawPointSite
		if _, err := binary.Decode(table[:pointSize], binary.LittleEndian, &site); err != nil {
			return err
		}
		if site.Insn == 0 || int(site.Length) > len(site.Bytes) {
			continue
		}
		if more, err := f(&site); err != nil || !more {
			return err
		}
	}
	return nil
}

// atOwn moves the pc of a thread from an instruction in a stub to that of the program.
func (p *Points) AtOwn(tid int, regs *ptrace.Registers) error {
	if !p.InStub(regs.Rip) {
		return nil
	}
	return p.eachPoint(func(site *agent.RawPointSite) (bool, error) {
		if regs.Rip != site.Insn {
			return true, nil
		}
		regs.Rip, regs.Orig_rax = site.At, ^uint64(0)
		return false, ptrace.SetRegisters(tid, regs)
	})
}

// hidePoints restores the program's own code, in a stopped process that is about to end.
func (p *Points) Hide() error {
	if len(p.Stubs()) == 0 {
		return nil
	}
	return p.eachPoint(func(site *agent.RawPointSite) (bool, error) {
		_, err := p.Memory.WriteAt(site.Bytes[:site.Length], int64(site.At))
		return true, err
	})
}

func ReadHunt(memory *ptrace.Memory) (*agent.RawHunt, error) {
	var r agent.RawHunt
	p := make([]byte, binary.Size(&r))
	if _, err := memory.ReadAt(p, agent.EngineHunt); err != nil {
		return nil, fmt.Errorf("its schedule: %w", err)
	}
	if _, err := binary.Decode(p, binary.LittleEndian, &r); err != nil {
		return nil, fmt.Errorf("its schedule: %w", err)
	}
	return &r, nil
}
