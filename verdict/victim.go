package verdict

import (
	"encoding/binary"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/watchtrace"
)

// victim is memory whose content explains the failure: a guard that was
// overwritten, or the cell of a bad value.
type victim struct {
	kind      evidence.CauseKind
	name, typ string
	// start and size are the bytes concerned.
	start evidence.Addr
	size  int
	// value is the bad value, if it is known; guard what should stand there.
	value, guard *uint64
	finding      *evidence.Finding
}

// findingKinds are the findings that tell of damaged memory.
var findingKinds = map[evidence.FindingKind]evidence.CauseKind{
	evidence.FindingHeapOverflow:  evidence.CauseHeapOverflow,
	evidence.FindingHeapUnderflow: evidence.CauseHeapUnderflow,
	evidence.FindingUseAfterFree:  evidence.CauseUseAfterFree,
	evidence.FindingDoubleFree:    evidence.CauseDoubleFree,
	evidence.FindingStackGuard:    evidence.CauseStackSmashing,
}

// wordSize is the largest that one watchpoint covers.
const wordSize = 8

// victims are what a case names, the strongest first.
func (w *work) victims() []victim {
	var list []victim
	for i := range w.Case.Findings {
		f := &w.Case.Findings[i]
		kind, ok := findingKinds[f.Kind]
		switch {
		case !ok:
		case f.Damage != nil:
			list = append(list, victim{kind: kind, name: damagedName(f), start: f.Damage.Start, size: int(min(f.Damage.End-f.Damage.Start, 2*wordSize)), finding: f})
		case f.Object != nil && (kind == evidence.CauseUseAfterFree || kind == evidence.CauseDoubleFree):
			list = append(list, victim{kind: kind, name: "the freed object", start: f.Object.Addr, size: wordSize, finding: f})
		case kind == evidence.CauseStackSmashing && f.Addr != 0:
			list = append(list, victim{kind: kind, name: "the stack guard", start: f.Addr, size: wordSize, guard: w.stackGuard(), finding: f})
		}
	}
	if len(list) > 0 {
		return list
	}
	if c := w.cell(); c != nil {
		list = append(list, *c)
	}
	return list
}

func damagedName(f *evidence.Finding) string {
	switch f.Kind {
	case evidence.FindingHeapOverflow:
		return "the bytes behind the object"
	case evidence.FindingHeapUnderflow:
		return "the bytes before the object"
	}
	return "the freed object"
}

// stackGuard is what compilers put below return addresses: the word of the
// thread's control block at fs:0x28 (System V ABI for x86-64, glibc's tcbhead_t).
func (w *work) stackGuard() *uint64 {
	const offset = 0x28
	p := w.Process
	if p.Failing < 0 || p.Failing >= len(p.Threads) {
		return nil
	}
	v, err := image.Uint64(p, evidence.Addr(p.Threads[p.Failing].Registers.FSBase)+offset)
	if err != nil {
		return nil
	}
	return &v
}

// cell is the memory that the bad value was read from.
func (w *work) cell() *victim {
	if w.Case.Scan == nil {
		return nil
	}
	for i := range w.Case.Scan.Suspects {
		s := &w.Case.Scan.Suspects[i]
		if s.Kind != evidence.SuspectCell || s.Size <= 0 {
			continue
		}
		v := &victim{kind: evidence.CauseBadValue, name: s.Name, typ: s.Type, start: s.Address, size: min(s.Size, wordSize)}
		if bad, ok := w.word(v.start, v.size); ok {
			v.value = &bad
		}
		return v
	}
	return nil
}

// word reads up to 8 bytes of the core.
func (w *work) word(addr evidence.Addr, size int) (uint64, bool) {
	var b [wordSize]byte
	if n, err := w.Process.ReadMemory(addr, b[:size]); err != nil || n != size {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// freed reports that the failure is the use of an object that was freed, not
// damage to it: what counts is its free.
func (v *victim) freed() bool {
	return v.finding != nil && v.finding.Damage == nil && (v.kind == evidence.CauseUseAfterFree || v.kind == evidence.CauseDoubleFree)
}

func (v *victim) end() evidence.Addr { return v.start + evidence.Addr(v.size) }

// target is what is watched for a victim: its writes alone tell.
func (v *victim) target() watchtrace.Target {
	return watchtrace.Target{Name: v.name, Type: v.typ, Addr: v.start, Size: v.size, Writes: true}
}

// changes reports whether an access changed bytes of the victim.
func (v *victim) changes(log *evidence.AccessLog, a *evidence.Access) bool {
	word := log.Variables[a.Variable].Address + evidence.Addr(a.Offset)
	for i := range int(a.Size) {
		at := word + evidence.Addr(i)
		if at >= v.start && at < v.end() && byte(a.Old>>(8*i)) != byte(a.New>>(8*i)) {
			return true
		}
	}
	return false
}

func writesMemory(c evidence.AccessCode) bool {
	return c == evidence.CodeWrite || c == evidence.CodeReadWrite || c == evidence.CodeUnknown
}

// stores are the indices of the accesses that matter for a victim, oldest first:
// base, the last one by which its memory was made what it should be, and culprit,
// the one that damaged it. Each is -1 if there is none.
func (v *victim) stores(log *evidence.AccessLog, before int) (base, culprit int) {
	base, culprit = -1, -1
	for i := before - 1; i >= 0; i-- {
		a := &log.Accesses[i]
		if !writesMemory(a.Kind) || !v.concerns(log, a) {
			continue
		}
		if a.By == evidence.ByHeap || v.guard != nil && a.New == *v.guard {
			return i, culprit
		}
		switch {
		case v.finding != nil && v.changes(log, a):
			culprit = i // the first one behind the base
		case v.finding == nil && culprit < 0 && (v.value == nil || a.New == *v.value):
			culprit = i // the last one
		}
	}
	return base, culprit
}

func (v *victim) concerns(log *evidence.AccessLog, a *evidence.Access) bool {
	word := log.Variables[a.Variable].Address + evidence.Addr(a.Offset)
	return word < v.end() && word+evidence.Addr(a.Size) > v.start
}
