package staticscan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// Section flags and types (ELF gABI, sh_flags, sh_type).
const (
	shfWrite    = 1
	shfAlloc    = 2
	shfExec     = 4
	typeNoBits  = 8
	maxLiterals = 32
	maxBackward = 4096 // how far before the message its literal may start
)

// span is a range of addresses that stands for a literal: a reference to any
// of them is one to the literal, whose tail the linker may share.
type span struct{ low, high evidence.Addr }

func (s span) holds(a uint64) bool { return a >= uint64(s.low) && a <= uint64(s.high) }

// scopeOfMessage finds the functions whose code refers to a literal that
// contains the message, directly or through a table of pointers.
func (s *scan) scopeOfMessage() error {
	found := false
	for _, m := range s.process.Modules {
		if m.Object == nil || image.RuntimeModule(m.Path) {
			continue
		}
		spans := s.literals(m, []byte(s.opts.Message))
		if len(spans) == 0 {
			continue
		}
		found = true
		spans = append(spans, s.pointersTo(m, spans)...)
		for _, pc := range s.referrers(m, spans) {
			s.addAt(pc)
		}
	}
	switch {
	case !found:
		return fmt.Errorf("no string literal contains %q", s.opts.Message)
	case len(s.scope) == 0:
		return fmt.Errorf("no code refers to the string literal %q", s.opts.Message)
	}
	return nil
}

// literals finds the message in the object's read-only data.
func (s *scan) literals(m *image.Module, message []byte) []span {
	var spans []span
	for _, sec := range m.Object.Sections() {
		if sec.Flags&shfAlloc == 0 || sec.Flags&(shfWrite|shfExec) != 0 || sec.Type == typeNoBits {
			continue
		}
		data, err := sec.Data()
		if err != nil {
			s.limit(m.Path, "section %s cannot be searched for the message: %v", sec.Name, err)
			continue
		}
		for at := 0; len(spans) < maxLiterals; {
			i := bytes.Index(data[at:], message)
			if i < 0 {
				break
			}
			i += at
			start := bytes.LastIndexByte(data[max(0, i-maxBackward):i], 0) + 1 + max(0, i-maxBackward)
			spans = append(spans, span{m.Addr(sec.Addr + uint64(start)), m.Addr(sec.Addr + uint64(i))})
			at = i + len(message)
		}
	}
	return spans
}

// pointersTo finds the words of the object's data that point to a literal:
// tables of messages, the pieces of Rust's format strings.
func (s *scan) pointersTo(m *image.Module, spans []span) []span {
	var words []span
	for _, sec := range m.Object.Sections() {
		if sec.Flags&shfAlloc == 0 || sec.Flags&shfWrite == 0 || sec.Type == typeNoBits || sec.Size > maxFunctionSize {
			continue
		}
		data := make([]byte, sec.Size)
		n, _ := s.process.ReadMemory(m.Addr(sec.Addr), data)
		for i := 0; i+8 <= n && len(words) < maxLiterals; i += 8 {
			if inSpans(spans, binary.LittleEndian.Uint64(data[i:])) {
				at := m.Addr(sec.Addr + uint64(i))
				words = append(words, span{at, at})
			}
		}
	}
	return words
}

func inSpans(spans []span, addr uint64) bool {
	for _, sp := range spans {
		if sp.holds(addr) {
			return true
		}
	}
	return false
}

// referrers finds the functions with an instruction that refers to one of
// the spans. Displacements and immediates are searched for as bytes first:
// that is many times faster than to decode a whole program.
func (s *scan) referrers(m *image.Module, spans []span) []evidence.Addr {
	var list []evidence.Addr
	seen := map[evidence.Addr]bool{}
	for _, sec := range m.Object.Sections() {
		if sec.Flags&shfExec == 0 || sec.Type == typeNoBits {
			continue
		}
		code, err := sec.Data()
		if err != nil {
			s.limit(m.Path, "section %s cannot be searched for references: %v", sec.Name, err)
			continue
		}
		for _, at := range candidates(code, m.Addr(sec.Addr), spans) {
			a, err := s.analyse(at)
			if err != nil || seen[a.function.entry] || !a.refersTo(at, spans) {
				continue
			}
			seen[a.function.entry] = true
			list = append(list, a.function.entry)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	return list
}

// candidates are the addresses of 4-byte fields that hold a span's address,
// relative to what follows them or as it is.
func candidates(code []byte, base evidence.Addr, spans []span) []evidence.Addr {
	low, high := spans[0].low, spans[0].high
	for _, sp := range spans {
		low, high = min(low, sp.low), max(high, sp.high)
	}
	width := uint64(high - low)
	var list []evidence.Addr
	for i := 0; i+4 <= len(code); i++ {
		field := binary.LittleEndian.Uint32(code[i:])
		next := uint64(base) + uint64(i) + 4
		relative := next + uint64(int64(int32(field)))
		// An immediate may follow the displacement: up to four bytes.
		if relative+4-uint64(low) <= width+4 || uint64(field)-uint64(low) <= width {
			list = append(list, base+evidence.Addr(i))
		}
	}
	return list
}

// refersTo confirms a candidate: the instruction around it has an operand
// that is an address in a span.
func (a *analysis) refersTo(at evidence.Addr, spans []span) bool {
	i := sort.Search(len(a.flow.insts), func(i int) bool { return a.flow.insts[i].PC > uint64(at) }) - 1
	if i < 0 || a.flow.insts[i].PC+uint64(a.flow.insts[i].Len) <= uint64(at) {
		return false
	}
	for n := range a.flow.insts[i].Operands {
		op := &a.flow.insts[i].Operands[n]
		switch {
		case op.IsImm && inSpans(spans, uint64(op.Imm)):
			return true
		case op.IsMemory && (op.Memory.Base == x86.RIP || op.Memory.Absolute) && inSpans(spans, op.Memory.Target):
			return true
		case op.IsMemory && inSpans(spans, uint64(op.Memory.Disp)):
			return true
		}
	}
	return false
}
