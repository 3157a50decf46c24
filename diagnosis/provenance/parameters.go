package provenance

import (
	"slices"

	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// Call is the last call before step n that pushed its return address right below cfa, the canonical frame address of the function that was
// called (DWARF 5, 6.4); -1: the trace does not have it, or a jump led there.
func Call(t *flow.Trace, n int, cfa uint64) int {
	for ; n >= 0; n = t.Previous(n) {
		if s := t.Step(n); !s.Library && s.Inst != nil && s.Inst.Flow == x86.FlowCall && t.Register(n, x86.RSP) == cfa {
			return n
		}
	}
	return -1
}

// Parameters are the registers in which a call, step call, handed over what the memory operands of step n, or its divisor, were made of:
// the values themselves, and the pointers through which they were loaded.
func Parameters(t *flow.Trace, n, call int) []x86.Reg {
	p := parameters{trace: t, call: call, seen: map[use]bool{}}
	p.operands(n)
	if s := t.Step(n); s.Inst != nil && (s.Inst.Op == "div" || s.Inst.Op == "idiv") {
		if place := divisor(s.Inst); place.Space == transfer.General {
			p.add(flow.Location{Thread: s.Thread, Space: place.Space, Num: place.Num, Size: place.Size}, n)
		}
	}
	for len(p.left) > 0 && len(p.seen) < mostUses {
		u := p.left[len(p.left)-1]
		p.left = p.left[:len(p.left)-1]
		p.follow(u)
	}
	return p.found
}

// mostUses bounds the values that are looked at.
const mostUses = 20_000

// use is a value, as it is before a step.
type use struct {
	what flow.Location
	n    int
}

type parameters struct {
	trace *flow.Trace
	call  int
	seen  map[use]bool
	left  []use
	found []x86.Reg
}

func (p *parameters) add(l flow.Location, n int) {
	if u := (use{l, n}); !p.seen[u] {
		p.seen[u] = true
		p.left = append(p.left, u)
	}
}

// operands adds the registers that the memory operands of a step have their addresses from. Those of the stack are no values.
func (p *parameters) operands(n int) {
	s := p.trace.Step(n)
	if s.Inst == nil {
		return
	}
	for i := range s.Inst.Operands {
		o := &s.Inst.Operands[i]
		if !o.IsMemory || o.Access == "" {
			continue
		}
		for _, r := range []x86.Reg{o.Memory.Base, o.Memory.Index} {
			if r.General() && r != x86.RSP {
				p.add(flow.Register(s.Thread, r, 8), n)
			}
		}
	}
}

func (p *parameters) follow(u use) {
	d := p.trace.Define(u.what, u.n)
	if d.At <= p.call {
		if l := d.Part; l.Space == transfer.General && slices.Contains(x86.ArgumentRegisters[:], x86.Reg(l.Num)) && !slices.Contains(p.found, x86.Reg(l.Num)) {
			p.found = append(p.found, x86.Reg(l.Num))
		}
		return
	}
	for _, from := range d.From {
		switch from.Space {
		case transfer.Flag:
			continue
		case transfer.General:
			if x86.Reg(from.Num) == x86.RSP {
				continue
			}
		case transfer.Memory:
			p.operands(d.At)
		}
		p.add(from, d.At)
	}
}
