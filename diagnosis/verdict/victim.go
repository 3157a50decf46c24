package verdict

import (
	"encoding/binary"
	"fmt"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/staticscan"
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
	// value is the bad value, if it is known. makes tells, of memory that was
	// damaged, an access that made it what it should be; the heap's always do.
	value   *uint64
	makes   func(*evidence.Access) bool
	finding *evidence.Finding
	// readPC is the instruction that read the value there; 0: it is not known.
	readPC evidence.Addr
	// failing: the failing instruction read it. A log does not have the read of an
	// instruction that faulted.
	failing bool
	// use: the failing thread used the freed object, and failed by something else; way: a trace shows that.
	use bool
	way *provenance.Way
	// outside: it lies outside of the array that was read there, so that it is the index
	// that matters, and no store to it.
	outside *staticscan.Outside
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

// victimSearch finds the victims of a failure.
type victimSearch struct {
	in       *Input
	progress *progress
	moments  *moments
	exact    *exact
}

// damaged is memory that a case shows to be damaged, the strongest first.
func (s *victimSearch) damaged() (list []victim) {
	for i := range s.in.Case.Findings {
		f := &s.in.Case.Findings[i]
		kind, ok := findingKinds[f.Kind]
		switch {
		case !ok:
		case f.Damage != nil:
			list = append(list, victim{kind: kind, name: damagedName(f), start: f.Damage.Start, size: int(min(f.Damage.End-f.Damage.Start, 2*wordSize)), finding: f})
		case onlyUsed(s.in.Case, f):
		case f.Object != nil && (kind == evidence.CauseUseAfterFree || kind == evidence.CauseDoubleFree):
			list = append(list, victim{kind: kind, name: "the freed object", start: f.Object.Addr, size: wordSize, finding: f})
		case kind == evidence.CauseStackSmashing && f.Addr != 0:
			list = append(list, victim{kind: kind, name: "the stack guard", start: f.Addr, size: wordSize, makes: storing(stackGuard(s.in.Process)), finding: f})
		}
	}
	return list
}

// failing is where the failing code had its bad value from.
func (s *victimSearch) failing() []victim {
	c := s.returnAddress()
	if o := readOutside(s.in.Case, s.in.Blame); c == nil && o != nil {
		c = &victim{kind: evidence.CauseBadValue, name: o.Array, outside: o}
	}
	if c == nil {
		c = s.cell()
	}
	if c == nil {
		c = s.loadedCell()
	}
	if c == nil {
		c = s.convertedText()
	}
	if c == nil {
		return nil
	}
	return []victim{*c}
}

// onlyUsed reports whether a finding is that the failing code used a freed object,
// while it failed by something else: that may be for another reason.
func onlyUsed(c *evidence.Case, f *evidence.Finding) bool {
	return f.Kind == evidence.FindingUseAfterFree && f.Damage == nil && f.Object != nil && c.Failure.Kind != evidence.UseAfterFree
}

// uses are the freed objects that the failing code used, in a process that has no
// damaged memory; or those that the failing thread is seen to use in a trace.
func (s *victimSearch) uses() []victim {
	var list []victim
	for i := range s.in.Case.Findings {
		f := &s.in.Case.Findings[i]
		switch _, ok := findingKinds[f.Kind]; {
		case onlyUsed(s.in.Case, f):
			list = append(list, victim{kind: evidence.CauseUseAfterFree, name: "the freed object", start: f.Object.Addr, size: wordSize, finding: f, use: true})
		case ok:
			return nil
		}
	}
	if len(list) == 0 && endedItself(s.in.Case) {
		return s.staleUses()
	}
	return list
}

// staleUses are the freed objects that a trace shows the failing thread to use.
func (s *victimSearch) staleUses() (list []victim) {
	if err := s.exact.record(s.progress.ctx, s.in.Image, s.progress.say); err != nil {
		return nil
	}
	for _, way := range s.exact.stale() {
		object := s.exact.objectOf(way)
		list = append(list, victim{kind: evidence.CauseUseAfterFree, name: "the freed object", start: object.Addr, size: wordSize, use: true, way: way,
			finding: &evidence.Finding{Kind: evidence.FindingUseAfterFree, Object: object, Site: s.exact.site(way.AccessPC), Proof: evidence.Replayed}})
	}
	return list
}

func damagedName(f *evidence.Finding) string {
	switch f.Kind {
	case evidence.FindingHeapOverflow:
		return "the bytes after the object"
	case evidence.FindingHeapUnderflow:
		return "the bytes before the object"
	}
	return "the freed object"
}

// stackGuard is what compilers put below return addresses: the word of the
// thread's control block at fs:0x28 (System V ABI for x86-64, glibc's tcbhead_t).
func stackGuard(p *image.Process) *uint64 {
	const offset = 0x28
	thread := p.FailingThread()
	if thread == nil {
		return nil
	}
	v, err := image.Uint64(p, evidence.Addr(thread.Registers.FSBase)+offset)
	if err != nil {
		return nil
	}
	return &v
}

// storing tells an access that stores a value.
func storing(value *uint64) func(*evidence.Access) bool {
	if value == nil {
		return nil
	}
	return func(a *evidence.Access) bool { return a.New == *value }
}

// returnAddress is the word of the stack that a return took its bad address from.
func (s *victimSearch) returnAddress() *victim {
	f, thread := &s.in.Case.Failure, s.in.Process.FailingThread()
	if thread == nil || f.Fault == nil || f.Arrival != evidence.ArrivedByReturn && (f.Instruction == nil || f.Instruction.Text != "ret") {
		return nil
	}
	pc, slot := thread.Registers.PC(), thread.Registers.SP()
	if m := s.in.Process.MappingAt(pc); m == nil || !m.Executable() {
		slot -= wordSize // it has returned
		if v, ok := wordAt(s.in.Process, slot, wordSize); !ok || v != uint64(pc) {
			return nil
		}
	} else if !staticscan.IsReturn(s.in.Process, pc) {
		return nil
	}
	// Before a call there, the word was another function's.
	called := func(a *evidence.Access) bool {
		return a.By == evidence.ByProgram && staticscan.IsCall(s.in.Process, a.PC)
	}
	return &victim{kind: evidence.CauseStackSmashing, name: "the return address", start: slot, size: wordSize, makes: called}
}

// cell is the memory that the bad value was read from.
func (s *victimSearch) cell() *victim {
	if s.in.Case.Scan == nil {
		return nil
	}
	for i := range s.in.Case.Scan.Suspects {
		x := &s.in.Case.Scan.Suspects[i]
		if x.Kind != evidence.SuspectCell || x.Size <= 0 {
			continue
		}
		v := &victim{kind: evidence.CauseBadValue, name: x.Name, typ: x.Type, start: x.Address, size: min(x.Size, wordSize)}
		if !isName(v.name) {
			v.name = nameOf(s.in.Process, s.in.Object, v.start)
		}
		if b := s.in.Blame; b != nil && b.Cell != nil && *b.Cell == x.Address && !b.CellHolds && b.Loaded.PC != 0 {
			// The address may have been another one when the code read there.
			if now := s.readCell(b.Loaded.PC, x.Name, nil); now != nil {
				now.typ = x.Type
				return now
			}
			if s.in.Process.MappingAt(x.Address) == nil {
				return nil
			}
		}
		if bad, ok := wordAt(s.in.Process, v.start, v.size); ok {
			v.value = &bad
		}
		v.failing = s.readByFailing(x.Address)
		return v
	}
	return nil
}

// readByFailing reports whether the instruction that faulted read a cell itself.
func (s *victimSearch) readByFailing(cell evidence.Addr) bool {
	b, thread := s.in.Blame, s.in.Process.FailingThread()
	return b != nil && b.Cell != nil && *b.Cell == cell && thread != nil && s.in.Case.Failure.Signal != nil &&
		b.Loaded.PC != 0 && b.Loaded.PC == thread.Registers.PC()
}

// loadedCell is the memory that a register got the bad value from, where the dead
// process no longer tells its address: the replay stands at the load again.
func (s *victimSearch) loadedCell() *victim {
	for i := range s.in.Case.Failure.Origin {
		step := &s.in.Case.Failure.Origin[i]
		if step.Kind == evidence.OriginCell && step.Cell == nil && step.Site != nil {
			return s.readCell(step.Site.PC, step.Symbol, nil)
		}
	}
	if s.in.Blame == nil {
		return nil
	}
	for _, way := range s.in.Blame.Ways {
		if v := s.readCell(way.PC, "", &way.Value); v != nil {
			return v
		}
	}
	return nil
}

// convertedText is the text that a number was made of which is the bad value.
func (s *victimSearch) convertedText() *victim {
	steps := s.in.Case.Failure.Origin
	if len(steps) == 0 {
		return nil
	}
	last := &steps[len(steps)-1]
	if last.Kind != evidence.OriginResult || last.Site == nil || !converters[libraryName(last.Symbol)] {
		return nil
	}
	text, err := s.moments.lastArgument(last.Site.PC)
	if err != nil {
		s.progress.failedPart(err)
		return nil
	}
	return textOf(last.Symbol, text)
}

// textOf is the text that a call of a function was handed.
func textOf(function string, text evidence.Addr) *victim {
	if text == 0 {
		return nil
	}
	return &victim{kind: evidence.CauseBadInput, name: convertedName + libraryName(function) + " converted", start: text, size: wordSize}
}

const convertedName = "the text that "

// text is where the victim's text is, 0 if it is none.
func (v *victim) text() evidence.Addr {
	if v.kind != evidence.CauseBadInput {
		return 0
	}
	return v.start
}

// convertedBy is the text that a number was made of which a store put there.
func (vs *visits) convertedBy(l *link) *victim {
	n := len(l.store.Steps)
	if n == 0 || l.access.By != evidence.ByProgram {
		return nil
	}
	last := &l.store.Steps[n-1]
	if last.Kind != evidence.OriginResult || last.Site == nil || !converters[libraryName(last.Symbol)] {
		return nil
	}
	at, err := vs.moments.lastNear(arrivals{pc: last.Site.PC, thread: l.access.Thread, ordinal: l.access.Ordinal, before: hitBefore(l.plan, l.log, &l.access)})
	var text evidence.Addr
	if err == nil && at.Count > 0 {
		text, err = vs.moments.firstArgument(at)
	}
	if err != nil {
		vs.progress.failedPart(err)
		return nil
	}
	return textOf(last.Symbol, text)
}

// converters are the functions of the C library that make a number of a text.
var converters = map[string]bool{"strtol": true, "strtoul": true, "strtod": true, "strtof": true, "atoi": true, "atol": true, "atof": true}

// printers are the functions of the C library that make a text of numbers. What such a number was is no longer to be seen in the text.
var printers = map[string]bool{"sprintf": true, "snprintf": true, "vsprintf": true, "vsnprintf": true, "asprintf": true, "vasprintf": true}

// printed reports whether a store made the text of a number, by a function of the C library.
func (l *link) printed() bool { return l.victim.text() != 0 && printers[libraryName(l.store.Through)] }

// printed reports whether the chain ends there.
func (c *chain) printed() bool { return len(c.links) > 0 && c.links[len(c.links)-1].printed() }

// readCell is what the instruction read last; nil if it is not known, or if the
// value is not the one wanted.
func (s *victimSearch) readCell(pc evidence.Addr, name string, want *uint64) *victim {
	found, err := s.moments.lastRead(pc)
	if err != nil {
		s.progress.failedPart(err)
		return nil
	}
	return victimOf(s.in.Process, s.in.Object, found, name, want)
}

// victimOf is what an instruction read; nil if that is not known, or if the value is
// not the one wanted.
func victimOf(p *image.Process, objects func(evidence.Addr) *evidence.HeapObject, found read, name string, want *uint64) *victim {
	if found.size <= 0 || want != nil && (found.value^*want)<<(8*max(wordSize-found.size, 0)) != 0 {
		return nil
	}
	v := &victim{kind: evidence.CauseBadValue, name: name, start: found.addr, size: min(found.size, wordSize), value: &found.value, outside: found.outside}
	if !isName(v.name) {
		v.name = found.name
	}
	if !isName(v.name) {
		v.name = nameOf(p, objects, v.start)
	}
	return v
}

// cellOf is the memory that a stored value was read from. Where the process behind
// the store does not tell its address for sure, the replay stands at the load again.
func (vs *visits) cellOf(l *link) *victim {
	st := &l.store
	known := func() *victim {
		v := &victim{kind: evidence.CauseBadValue, name: st.CellName, typ: st.CellType, start: *st.Cell, size: max(1, min(st.CellSize, wordSize))}
		if !isName(v.name) {
			v.name = nameOf(vs.in.Process, vs.in.Object, v.start)
		}
		return v
	}
	if st.Cell != nil && (st.CellHolds || st.Loaded.PC == 0 || l.access.By != evidence.ByProgram || copied(st)) {
		return known()
	}
	a := arrivals{thread: l.access.Thread, ordinal: l.access.Ordinal, before: hitBefore(l.plan, l.log, &l.access)}
	name := ""
	var loads []evidence.Addr
	if st.Cell != nil {
		name, loads = st.CellName, []evidence.Addr{st.Loaded.PC}
	} else {
		for _, step := range st.Steps {
			if step.Kind == evidence.OriginCell && step.Cell == nil && step.Site != nil {
				name, loads = step.Symbol, []evidence.Addr{step.Site.PC}
				break
			}
		}
	}
	var want *uint64
	if loads == nil && len(st.Ways) > 0 {
		want = &st.Ways[0].Value
		for _, way := range st.Ways {
			loads = append(loads, way.PC)
		}
	}
	for _, a.pc = range loads {
		at, err := vs.moments.lastNear(a)
		var found read
		if err == nil && at.Count > 0 {
			found, err = vs.moments.readAt(at)
		}
		if err != nil {
			vs.progress.failedPart(err)
		}
		if v := victimOf(vs.in.Process, vs.in.Object, found, name, want); v != nil {
			return v
		}
	}
	if st.Cell != nil {
		return known()
	}
	return nil
}

// copied reports that a library copied what was stored.
func copied(st *staticscan.Store) bool { return st.Through != "" }

// nameOf names memory by the heap object, or else by its address. The failing thread's errno has
// its name.
func nameOf(p *image.Process, objects func(evidence.Addr) *evidence.HeapObject, addr evidence.Addr) string {
	if thread := p.FailingThread(); thread != nil {
		if at, ok := errnoAddress(p, thread); ok && at == addr {
			return errnoName
		}
	}
	if objects == nil {
		return addr.String()
	}
	o := objects(addr)
	if o == nil || addr < o.Addr || addr >= o.SlotEnd || o.Allocated == nil || o.Allocated.Site == nil {
		return addr.String()
	}
	name := "the object allocated at " + siteText(o.Allocated.Site)
	if addr > o.Addr {
		name = fmt.Sprintf("offset %d of %s", addr-o.Addr, name)
	}
	return name
}

// wordAt reads up to 8 bytes of the core.
func wordAt(p *image.Process, addr evidence.Addr, size int) (uint64, bool) {
	var b [wordSize]byte
	if n, err := p.ReadMemory(addr, b[:size]); err != nil || n != size {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// freed reports that the failure is the use of an object that was freed, not
// damage to it: what counts is its free.
func (v *victim) freed() bool {
	return v.finding != nil && v.finding.Damage == nil && (v.kind == evidence.CauseUseAfterFree || v.kind == evidence.CauseDoubleFree)
}

// damaged reports that the victim is memory that should have stayed as it was, and
// not a cell that got a bad value.
func (v *victim) damaged() bool { return v.finding != nil || v.makes != nil }

// isWord reports that one watch covers the victim, so that an access shows all of its
// value.
func (v *victim) isWord() bool {
	return v.size&(v.size-1) == 0 && v.size <= wordSize && uint64(v.start)%uint64(v.size) == 0
}

func (v *victim) end() evidence.Addr { return v.start + evidence.Addr(v.size) }

// target is what is watched for a victim: of damage the writes alone tell.
func (v *victim) target() watchtrace.Target {
	return watchtrace.Target{Name: v.name, Type: v.typ, Addr: v.start, Size: v.size, Writes: v.damaged() || v.value == nil}
}

// readBy is behind the last time, of so many accesses, that a thread read the bad value
// there: what was stored later is none of its. All of them, if it was not seen to.
func (v *victim) readBy(log *evidence.AccessLog, before int, thread uint32) int {
	if v.failing || v.damaged() || v.value == nil || !v.isWord() {
		return before
	}
	for i := before - 1; i >= 0; i-- {
		a := &log.Accesses[i]
		if a.Kind == evidence.CodeRead && a.Thread == thread && a.New == *v.value && v.concerns(log, a) && (v.readPC == 0 || a.PC == v.readPC) {
			return i + 1
		}
	}
	return before
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
		if a.By == evidence.ByHeap || v.makes != nil && v.makes(a) {
			return i, culprit
		}
		switch {
		case v.damaged() && v.changes(log, a):
			culprit = i // the first one behind the base
		case !v.damaged() && culprit < 0 && (v.value == nil || !v.isWord() || a.New == *v.value):
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
	if v.damaged() {
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
		if a.By != first.By || a.Position != first.Position || a.Thread != first.Thread || a.PC != first.PC && !sameCall(log, a, first) {
			break
		}
		hits = append(hits, a.Hit)
	}
	return hits
}

// sameCall reports whether one call of a library made two accesses, which such do with
// several instructions: the line that is responsible is not where they are.
func sameCall(log *evidence.AccessLog, a, b *evidence.Access) bool {
	if a.Context != b.Context || int(a.Context) >= len(log.Contexts) {
		return false
	}
	call := log.Contexts[a.Context].Site.PC
	return call != 0 && call != a.PC && call != b.PC
}

func (v *victim) concerns(log *evidence.AccessLog, a *evidence.Access) bool {
	word := log.Variables[a.Variable].Address + evidence.Addr(a.Offset)
	return word < v.end() && word+evidence.Addr(a.Size) > v.start
}

// resultVictim is what the failing instruction had from a call and from no memory.
func resultVictim(c *evidence.Case, b *staticscan.Blame, s *start) victim {
	name := c.Failure.Pointer
	switch {
	case c.Failure.Kind == evidence.RustPanic || rustReport(c) != nil:
		name = "the value that was unwrapped"
	case c.Failure.Kind == evidence.AssertionFailure:
		name = "the value that was tested"
	case c.Failure.Kind == evidence.ExitStatus:
		name = "the value that decided the exit"
	case !isName(name):
		name = "the bad value"
	}
	v := victim{kind: evidence.CauseBadValue, name: name, size: wordSize}
	if s != nil {
		v.value = s.want
	}
	if b != nil && (b.Role == staticscan.RoleIndex || b.Role == staticscan.RoleDivisor) {
		v.size = wordSize / 2
	}
	return v
}

// nameFor is what the failing code calls the value that was loaded from a victim, if it
// has a name for it, or else the victim's.
func (c *chain) nameFor(v *victim) string {
	if !isName(v.name) {
		return c.victim.name
	}
	return v.name
}
