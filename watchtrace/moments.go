package watchtrace

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// Moments returns the moments of these accesses of the log. A moment has a pc only where it is known how often the thread was
// there since its last event.
func Moments(process *image.Process, log *evidence.AccessLog, indices []int) []evidence.Moment {
	wanted := map[momentKey]map[uint64]int{} // by hit: the index in the result
	list := make([]evidence.Moment, len(indices))
	for i, n := range indices {
		a := &log.Accesses[n]
		list[i] = evidence.Moment{Thread: a.Thread, Ordinal: a.Ordinal}
		if !countable(process, log, a) {
			continue
		}
		key := momentKeyOf(a)
		if wanted[key] == nil {
			wanted[key] = map[uint64]int{}
		}
		wanted[key][a.Hit] = i
	}
	counts := map[momentKey]uint64{}
	for i := range log.Accesses {
		a := &log.Accesses[i]
		key := momentKeyOf(a)
		hits := wanted[key]
		if hits == nil {
			continue
		}
		counts[key]++
		if n, found := hits[a.Hit]; found {
			list[n].PC, list[n].Count = a.PC, counts[key]
		}
	}
	return list
}

// momentKey is an instruction that a thread executes between two of its events, and the word that it accesses.
type momentKey struct {
	thread   uint32
	ordinal  uint64
	pc       evidence.Addr
	variable int32
	offset   uint32
}

func momentKeyOf(a *evidence.Access) momentKey {
	return momentKey{a.Thread, a.Ordinal, a.PC, a.Variable, a.Offset}
}

// countable reports whether an access was made by an instruction that always accesses the same word: then it was executed as
// often as there are accesses. For others that would have to be counted at the instruction.
func countable(process *image.Process, log *evidence.AccessLog, a *evidence.Access) bool {
	if log.Variables[a.Variable].Lost > 0 {
		return false // there may have been others before
	}
	var code [15]byte
	if n, err := process.ReadMemory(a.PC, code[:]); n == 0 && err != nil || a.By != evidence.ByProgram || a.PC == 0 {
		return false
	}
	inst, err := x86.Decode(code[:], uint64(a.PC))
	if err != nil {
		return false
	}
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if o.IsMemory && o.Access != "" && (o.Repeated || o.Memory.Segment != x86.SegNone || o.Memory.Index != x86.RegNone ||
			o.Memory.Base != x86.RIP && !o.Memory.Absolute) {
			return false
		}
	}
	return true
}
