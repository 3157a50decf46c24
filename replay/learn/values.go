package learn

import (
	"maps"
	"slices"

	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// origins are the addresses of accesses that read a value, or parts of it: the first ones, as code seldom computes with more.
type origins []uint64

const mostOrigins = 4

func (o origins) with(others origins) origins {
	for _, pc := range others {
		if len(o) < mostOrigins && !slices.Contains(o, pc) {
			o = append(slices.Clip(o), pc)
		}
	}
	return o
}

// storage is a register, the flags, or a word of the stack.
type storage struct {
	space transfer.Space
	at    uint64 // the register's number, the word's address / wordSize
}

// values are the origins of what a thread has in registers, flags and on its stack.
type values map[storage]origins

const mostValues = 4096

func newValues() values { return values{} }

// called forgets what a call may have changed: all but the stack.
func (v values) called() {
	maps.DeleteFunc(v, func(s storage, _ origins) bool { return s.space != transfer.Memory })
}

// follow notes what an instruction does with values, and which of them a branch depends on.
func (r *races) follow(v values, in *instruction, pc uint64, general *[16]uint64) {
	if in.inst.Flow == x86.FlowBranch {
		for _, pc := range v[storage{space: transfer.Flag}] {
			r.decides[pc] = true
		}
		return
	}
	type change struct {
		to   storage
		from origins
	}
	var changes []change
	for i := range in.transfers {
		x := &in.transfers[i]
		to, ok := placeOf(x.To, in, general)
		if !ok || x.To.Off > 0 && to.space != transfer.Flag && to.space != transfer.Memory {
			continue // the rest of a register
		}
		var from origins
		for _, p := range x.From {
			if p.Space == transfer.Memory {
				from = from.with(origins{pc})
			}
			if s, ok := placeOf(p, in, general); ok {
				from = from.with(v[s])
			}
		}
		if i := slices.IndexFunc(changes, func(c change) bool { return c.to == to }); i >= 0 {
			changes[i].from = changes[i].from.with(from) // flags are one storage
		} else {
			changes = append(changes, change{to, from})
		}
	}
	for _, c := range changes {
		if len(c.from) == 0 {
			delete(v, c.to)
			continue
		}
		if len(v) >= mostValues {
			clear(v)
		}
		v[c.to] = c.from
	}
}

// placeOf is the storage of a place; not memory other than the stack's.
func placeOf(p transfer.Place, in *instruction, general *[16]uint64) (storage, bool) {
	switch p.Space {
	case transfer.Flag:
		return storage{space: transfer.Flag}, true
	case transfer.Memory:
		addr, ok := addressOf(&in.inst.Operands[p.Num], general)
		addr += uint64(p.Off)
		return storage{transfer.Memory, addr / wordSize}, ok && nearStack(addr, general)
	}
	return storage{p.Space, uint64(p.Num)}, true
}
