package tracee

import (
	"diagnose/image/x86"
	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
)

// SearchEntries searches the object that has the code at pcs, and returns that code.
func (p *Process) SearchEntries(s *patch.EntrySearch, pcs ...uint64) (text []byte, base uint64, known bool) {
	maps, err := p.Mappings()
	own := maps.Containing(pcs[0])
	const most = 64 << 20
	if err != nil || own == nil || own.Size() > most {
		return nil, 0, false
	}
	for i := range maps {
		m := &maps[i]
		// Instructions that the recorder moved are in memory without a name.
		moved := m.Perms[2] == 'x' && m.Path == ""
		if m.Perms[0] != 'r' || m.Size() > most || m != own && !moved && (m.Perms[1] == 'w' || m.Path == "" || m.Path != own.Path) {
			continue
		}
		bytes := make([]byte, m.Size())
		if _, err := p.Memory.ReadAt(bytes, int64(m.Start)); err != nil {
			return nil, 0, false
		}
		if m == own {
			text, base = bytes, m.Start
			for _, pc := range pcs {
				if !s.ShortJumps(text, base, pc) {
					return nil, 0, false
				}
			}
		}
		if m.Perms[2] == 'x' {
			s.LongJumps(bytes, m.Start)
		} else {
			s.Tables(bytes, m.Start, func(a uint64) bool { return a >= own.Start && a < own.End })
		}
	}
	return text, base, true
}

// BackTo moves a thread from the replacement of an instruction, which begins at start, to the
// instruction's address in the program.
func BackTo(inst *x86.Inst, start uint64, regs *ptrace.Registers) {
	if inst.Flow == x86.FlowCall && regs.Rip > start {
		regs.Rsp += 8 // its replacement subtracts them first
	}
	regs.Rip = inst.PC
}
