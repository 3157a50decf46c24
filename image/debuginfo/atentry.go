package debuginfo

import "strings"

// argumentRegisters are the DWARF numbers of the registers that hand over the first integers and
// pointers of a call; mostVectors is how many of xmm0 and so on hand over floating-point numbers
// (System V ABI, AMD64 supplement, 3.2.3).
var argumentRegisters = [...]byte{5, 4, 1, 2, 8, 9}

const (
	mostVectors = 8
	firstVector = 17 // the DWARF number of xmm0
	opBregRSP   = 0x77
)

// ParametersAtEntry returns the parameters of a function, which the level of CallsAt is, with their
// locations right at its entry. A location that the compiler gives for the whole function is not
// yet valid there: it is computed by the ABI. unplaced are the names of those for which that was
// not possible.
func (i *Info) ParametersAtEntry(call Call, entry uint64) (list []Variable, unplaced []string, err error) {
	all, err := i.VariablesAt(call, entry)
	if err != nil || call.Function == nil {
		return nil, nil, err
	}
	p := passing{lost: i.isClone(entry)}
	result, _, err := call.Function.Signature()
	if err != nil {
		return nil, nil, err
	}
	p.takeResult(result, call.Function.Unit)
	for _, v := range all {
		if !v.Parameter {
			continue
		}
		location, known := p.take(v.Type)
		switch {
		case v.Listed, len(v.Location) == 0, inRegister(v.Location):
		case known:
			v.Location = location
		default:
			unplaced = append(unplaced, v.Name)
			continue
		}
		list = append(list, v)
	}
	return list, unplaced, nil
}

// inRegister reports whether a location is a register alone.
func inRegister(location []byte) bool {
	const registers = 32
	return len(location) == 1 && location[0] >= opReg0 && location[0] < opReg0+registers
}

// isClone reports whether the code is a variant of a function that gcc made, such as f.isra.0 and
// f.constprop.1: parameters may be missing from its calls.
func (i *Info) isClone(entry uint64) bool {
	s, found := i.main.file.SymbolAt(entry)
	return found && strings.Contains(s.Name, ".")
}

// passing assigns places to the parameters of a call, in their order.
type passing struct {
	general, vectors int
	stack            int64 // bytes
	lost             bool  // the places of all that follow are not known
}

// takeResult takes the register in which the address of a large result is handed over.
func (p *passing) takeResult(t Type, u *Unit) {
	const largest = 16 // bytes that registers return
	if t == nil || t.Kind() != KindStruct && t.Kind() != KindUnion {
		return
	}
	switch {
	case t.Size() > largest:
		p.general++
	case u == nil || qualifies(u.Language):
		p.lost = true // it depends on the class's constructors
	}
}

// take returns the location of the next parameter at the entry, when the stack pointer is at the
// return address.
func (p *passing) take(t Type) (location []byte, known bool) {
	switch {
	case p.lost || t == nil:
		p.lost = true
		return nil, false
	case InGeneralRegister(t):
		if p.general < len(argumentRegisters) {
			p.general++
			return []byte{opReg0 + argumentRegisters[p.general-1]}, true
		}
	case t.Kind() == KindFloat && t.Size() <= 8:
		if p.vectors < mostVectors {
			p.vectors++
			return []byte{opReg0 + firstVector + byte(p.vectors) - 1}, true
		}
	default:
		p.lost = true // how parts of structures are handed over is not computed
		return nil, false
	}
	const word = 8
	at := word + p.stack
	p.stack += word
	return append([]byte{opBregRSP}, signedLEB(at)...), true
}

// signedLEB encodes a number that is not negative (DWARF 5 section 7.6).
func signedLEB(v int64) []byte {
	var b []byte
	for {
		part := byte(v & 0x7f)
		v >>= 7
		if v == 0 && part&0x40 == 0 {
			return append(b, part)
		}
		b = append(b, part|0x80)
	}
}
