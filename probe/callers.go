package probe

import (
	"bytes"
	"encoding/binary"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/replay"
)

const (
	// mostBack bounds the instructions that returnPoints finds.
	mostBack = 1000
	// mostSearched bounds the code of an object that it searches, and that of a function that it decodes.
	mostSearched, mostDecoded = 256 << 20, 1 << 20
)

// returnPoints finds where the direct calls of functions return to, in their own objects. Code of the tool can be put there before the program
// runs, where an instruction can be moved. Other calls are known when they are made. files has the file of each place, and gets that of
// each of the instructions.
func returnPoints(p *image.Process, places []Place, files map[evidence.Addr]replay.MappedFile) []evidence.Addr {
	var list []evidence.Addr
	for i := range places {
		x := &places[i]
		m := p.ModuleAt(x.PC)
		if x.Kind != KindReturn || m == nil {
			continue
		}
		at := p.MappingAt(x.PC)
		if at == nil || at.End-at.Start > mostSearched {
			continue
		}
		text := make([]byte, at.End-at.Start)
		if _, err := p.ReadMemory(at.Start, text); err != nil {
			continue
		}
		for _, call := range callsTo(text, uint64(at.Start), uint64(x.PC)) {
			if isInstruction(p, m, evidence.Addr(call)) {
				back := evidence.Addr(call + callLength)
				list = append(list, back)
				if f, known := files[x.PC]; known {
					files[back] = f
				}
			}
			if len(list) > mostBack {
				return nil
			}
		}
	}
	return list
}

const (
	callOpcode = 0xe8
	callLength = 5
)

// callsTo finds bytes that are a call of an address with 32 bits of displacement, if they are an instruction.
func callsTo(text []byte, base, target uint64) []uint64 {
	var list []uint64
	for at := 0; ; at++ {
		n := bytes.IndexByte(text[at:], callOpcode)
		if at += n; n < 0 || at+callLength > len(text) {
			return list
		}
		pc := base + uint64(at)
		if pc+callLength+uint64(int64(int32(binary.LittleEndian.Uint32(text[at+1:])))) == target {
			list = append(list, pc)
		}
	}
}

// isInstruction reports whether an instruction begins at a pc: decoding the function that has it, by the debug information, leads there.
func isInstruction(p *image.Process, m *image.Module, pc evidence.Addr) bool {
	f, err := m.FunctionCode(pc)
	if err != nil || f == nil {
		return false
	}
	for _, r := range f.Ranges {
		if pc < r[0] || pc >= r[1] || r[1]-r[0] > mostDecoded {
			continue
		}
		code := make([]byte, r[1]-r[0])
		if _, err := p.ReadMemory(r[0], code); err != nil {
			return false
		}
		at := r[0]
		for at < pc {
			inst, err := x86.Decode(code[at-r[0]:], uint64(at))
			if err != nil {
				return false
			}
			at += evidence.Addr(inst.Len)
		}
		return at == pc
	}
	return false
}
