package verdict

import (
	"encoding/binary"
	"fmt"

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
	c := w.cell()
	if c == nil {
		c = w.loadedCell()
	}
	if c == nil {
		c = w.convertedText()
	}
	if c != nil {
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
	thread := w.Process.FailingThread()
	if thread == nil {
		return nil
	}
	v, err := image.Uint64(w.Process, evidence.Addr(thread.Registers.FSBase)+offset)
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

// loadedCell is the memory that a register got the bad value from, where the dead
// process no longer tells its address: the replay stands at the load again.
func (w *work) loadedCell() *victim {
	for i := range w.Case.Failure.Origin {
		step := &w.Case.Failure.Origin[i]
		if step.Kind == evidence.OriginCell && step.Cell == nil && step.Site != nil {
			return w.readCell(step.Site.PC, step.Symbol, nil)
		}
	}
	if w.Blame == nil {
		return nil
	}
	for _, way := range w.Blame.Ways {
		if v := w.readCell(way.PC, "", &way.Value); v != nil {
			return v
		}
	}
	return nil
}

// convertedText is the text that a number was made of which is the bad value.
func (w *work) convertedText() *victim {
	steps := w.Case.Failure.Origin
	if len(steps) == 0 {
		return nil
	}
	last := &steps[len(steps)-1]
	if last.Kind != evidence.OriginResult || last.Site == nil || !converters[libraryName(last.Symbol)] {
		return nil
	}
	text, err := w.lastArgument(last.Site.PC)
	if err != nil {
		w.limit(err.Error())
		return nil
	}
	if text == 0 {
		return nil
	}
	return &victim{kind: evidence.CauseBadInput, name: "the text that " + libraryName(last.Symbol) + " converted", start: text, size: wordSize}
}

// converters are the functions of the C library that make a number of a text.
var converters = map[string]bool{"strtol": true, "strtoul": true, "strtod": true, "strtof": true, "atoi": true, "atol": true, "atof": true}

// readCell is what the instruction read last; nil if it is not known, or if the
// value is not the one wanted.
func (w *work) readCell(pc evidence.Addr, name string, want *uint64) *victim {
	found, err := w.lastRead(pc)
	if err != nil {
		w.limit(err.Error())
		return nil
	}
	if found.size <= 0 || want != nil && found.value != *want {
		return nil
	}
	v := &victim{kind: evidence.CauseBadValue, name: name, start: found.addr, size: min(found.size, wordSize), value: &found.value}
	if v.name == "" {
		v.name = found.name
	}
	if v.name == "" {
		v.name = w.nameOf(v.start)
	}
	return v
}

// nameOf names memory by the heap object, or else by its address.
func (w *work) nameOf(addr evidence.Addr) string {
	if w.Object == nil {
		return addr.String()
	}
	o := w.Object(addr)
	if o == nil || addr < o.Addr || o.Allocated == nil || o.Allocated.Site == nil {
		return addr.String()
	}
	name := "the object allocated at " + siteText(o.Allocated.Site)
	if addr > o.Addr {
		name = fmt.Sprintf("offset %d of %s", addr-o.Addr, name)
	}
	return name
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

// target is what is watched for a victim: of damage the writes alone tell.
func (v *victim) target() watchtrace.Target {
	return watchtrace.Target{Name: v.name, Type: v.typ, Addr: v.start, Size: v.size, Writes: v.finding != nil || v.value == nil}
}

// readBy is behind the last time that a thread read the bad value there: what was
// stored later is none of its. All accesses, if it was not seen to.
func (v *victim) readBy(log *evidence.AccessLog, thread uint32) int {
	if v.finding != nil || v.value == nil {
		return len(log.Accesses)
	}
	for i := len(log.Accesses) - 1; i >= 0; i-- {
		if a := &log.Accesses[i]; a.Kind == evidence.CodeRead && a.Thread == thread && a.New == *v.value && v.concerns(log, a) {
			return i + 1
		}
	}
	return len(log.Accesses)
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

// hits are those of the pass that make up what the access with the index began,
// or ended: of damage all that follow (one may store again what is there already),
// of a value the same instruction's before.
func (v *victim) hits(log *evidence.AccessLog, index int) (hits []uint64) {
	first := &log.Accesses[index]
	if v.finding != nil {
		for i := index; i < len(log.Accesses); i++ {
			if a := &log.Accesses[i]; a.By != evidence.ByHeap && writesMemory(a.Kind) && v.concerns(log, a) {
				hits = append(hits, a.Hit)
			}
		}
		return hits
	}
	for i := index; i >= 0; i-- {
		a := &log.Accesses[i]
		if !v.concerns(log, a) || !writesMemory(a.Kind) {
			continue
		}
		if a.PC != first.PC || a.By != first.By || a.Position != first.Position || a.Thread != first.Thread {
			break
		}
		hits = append(hits, a.Hit)
	}
	return hits
}

func (v *victim) concerns(log *evidence.AccessLog, a *evidence.Access) bool {
	word := log.Variables[a.Variable].Address + evidence.Addr(a.Offset)
	return word < v.end() && word+evidence.Addr(a.Size) > v.start
}
