package staticscan

import (
	"encoding/binary"
	"fmt"
	"sort"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// function is a piece of code with one entry.
type function struct {
	name   string
	module *image.Module
	entry  evidence.Addr
	// ranges are [low, high), the entry's first; guessed says that they do
	// not come from symbols or DWARF.
	ranges  [][2]evidence.Addr
	guessed bool
}

func (f *function) contains(pc evidence.Addr) bool {
	for _, r := range f.ranges {
		if pc >= r[0] && pc < r[1] {
			return true
		}
	}
	return false
}

// functionAt finds the function that covers pc: by DWARF, by symbol, or by
// the table of .eh_frame_hdr.
func functionAt(p *image.Process, pc evidence.Addr) (*function, error) {
	m := p.ModuleAt(pc)
	if m == nil {
		return nil, fmt.Errorf("no object is mapped at %v", pc)
	}
	if f := functionByDWARF(p, m, pc); f != nil {
		return f, nil
	}
	if s, ok := p.SymbolAt(pc); ok && s.Size > 0 && pc < s.Addr+evidence.Addr(s.Size) {
		return functionBySymbol(p, s), nil
	}
	low, high, err := frameRange(m, m.LinkAddr(pc))
	if err != nil {
		return nil, fmt.Errorf("the function at %v has no symbol: %w", pc, err)
	}
	f := &function{module: m, entry: m.Addr(low), guessed: true}
	f.name = nameOf(p, f.entry)
	f.ranges = [][2]evidence.Addr{{m.Addr(low), m.Addr(high)}}
	return f, nil
}

func functionByDWARF(p *image.Process, m *image.Module, pc evidence.Addr) *function {
	info, err := m.Debug()
	if err != nil || info == nil {
		return nil
	}
	d, err := info.FunctionAt(m.LinkAddr(pc))
	if err != nil || d == nil || len(d.Ranges) == 0 {
		return nil
	}
	f := &function{module: m, entry: m.Addr(d.Entry), name: nameOf(p, m.Addr(d.Entry))}
	for _, r := range d.Ranges {
		f.ranges = append(f.ranges, [2]evidence.Addr{m.Addr(r[0]), m.Addr(r[1])})
	}
	return f
}

// functionBySymbol takes the parts that gcc splits off into account, which
// it names after the function.
func functionBySymbol(p *image.Process, s image.Symbol) *function {
	f := &function{name: s.Name, module: s.Module, entry: s.Addr}
	f.ranges = [][2]evidence.Addr{{s.Addr, s.Addr + evidence.Addr(s.Size)}}
	if s.Module == nil || s.Module.Object == nil {
		return f
	}
	own, ok := s.Module.Object.SymbolAt(s.Module.LinkAddr(s.Addr))
	if !ok {
		return f
	}
	if cold, ok := s.Module.Object.SymbolNamed(own.Name + ".cold"); ok && cold.Size > 0 {
		at := s.Module.Addr(cold.Value)
		f.ranges = append(f.ranges, [2]evidence.Addr{at, at + evidence.Addr(cold.Size)})
	}
	return f
}

// nameOf names the physical function at an address.
func nameOf(p *image.Process, pc evidence.Addr) string {
	calls := p.Symbolize(pc, image.AtInstruction)
	if len(calls) > 0 {
		if name := calls[len(calls)-1].Site.Function; name != "" {
			return name
		}
	}
	return placeName(p, pc)
}

// decode reads and decodes the function's code, in address order. What
// could not be read or decoded is told in problems.
func (f *function) decode(p *image.Process) (insts []x86.Inst, problems []string) {
	ranges := append([][2]evidence.Addr(nil), f.ranges...)
	sort.Slice(ranges, func(i, j int) bool { return ranges[i][0] < ranges[j][0] })
	budget := uint64(maxFunctionSize)
	var end evidence.Addr
	for _, r := range ranges {
		low := max(r[0], end)
		if r[1] <= low {
			continue
		}
		size := uint64(r[1] - low)
		if size > budget {
			problems = append(problems, fmt.Sprintf("only the first %d bytes of %s were decoded", maxFunctionSize, f.name))
			size = budget
		}
		budget -= size
		end = low + evidence.Addr(size)
		code, err := readCode(p, f.module, low, size)
		if err != nil {
			problems = append(problems, fmt.Sprintf("code of %s cannot be read: %v", f.name, err))
		}
		part, bad := x86.Function(code, uint64(low))
		if bad > 0 {
			problems = append(problems, fmt.Sprintf("%d places in %s are no instruction that is known", bad, f.name))
		}
		insts = append(insts, part...)
	}
	return insts, problems
}

// readCode prefers the process's memory to the file: code can be patched.
func readCode(memory image.Memory, m *image.Module, at evidence.Addr, size uint64) ([]byte, error) {
	code := make([]byte, size)
	n, err := memory.ReadMemory(at, code)
	if err == nil {
		return code, nil
	}
	if m != nil && m.Object != nil {
		if k, fileErr := m.Object.ReadAddr(code[n:], m.LinkAddr(at)+uint64(n)); fileErr == nil {
			return code[:n+k], nil
		}
	}
	return code[:n], err
}

// Encodings of .eh_frame_hdr that every linker writes (LSB 5.0 core,
// 10.6.2): a 4-byte pointer relative to its place, a 4-byte count, and a
// table of pairs relative to the section.
const (
	encodingPCRel4   = 0x1b
	encodingCount4   = 0x03
	encodingDataRel4 = 0x3b
)

// frameRange bounds the code around a link-time address by the entries of
// .eh_frame_hdr: from the one before it to the next.
func frameRange(m *image.Module, link uint64) (low, high uint64, err error) {
	if m.Object == nil {
		return 0, 0, fmt.Errorf("no file for %s", m.Path)
	}
	s := m.Object.Section(".eh_frame_hdr")
	if s == nil {
		return 0, 0, fmt.Errorf("%s has no .eh_frame_hdr", m.Path)
	}
	data, err := s.Data()
	if err != nil {
		return 0, 0, err
	}
	low, high, ok := searchFrameTable(data, s.Addr, link)
	if !ok {
		return 0, 0, fmt.Errorf("%s: .eh_frame_hdr does not cover %#x", m.Path, link)
	}
	if code := m.Object.SectionAt(link); code != nil {
		if low < code.Addr {
			return 0, 0, fmt.Errorf("%s: .eh_frame_hdr has nothing in %s before %#x", m.Path, code.Name, link)
		}
		high = min(high, code.Addr+code.Size)
	}
	if high <= link {
		return 0, 0, fmt.Errorf("%s: .eh_frame_hdr ends before %#x", m.Path, link)
	}
	return low, high, nil
}

func searchFrameTable(data []byte, base, link uint64) (low, high uint64, ok bool) {
	if len(data) < 12 || data[0] != 1 || data[1] != encodingPCRel4 || data[2] != encodingCount4 || data[3] != encodingDataRel4 {
		return 0, 0, false
	}
	count := int(min(uint64(binary.LittleEndian.Uint32(data[8:])), uint64(len(data)-12)/8))
	at := func(i int) uint64 {
		return base + uint64(int64(int32(binary.LittleEndian.Uint32(data[12+8*i:]))))
	}
	i := sort.Search(count, func(i int) bool { return at(i) > link }) - 1
	if i < 0 {
		return 0, 0, false
	}
	high = at(i) + maxFunctionSize
	if i+1 < count {
		high = at(i + 1)
	}
	return at(i), high, true
}
