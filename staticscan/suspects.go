package staticscan

import (
	"cmp"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	typed "diagnose/image/value"
)

// suspectKey tells suspects apart: the same bytes are one suspect.
type suspectKey struct {
	addr evidence.Addr
	size int
	name string // for whole arrays, whose pieces share an address
}

// suspect is a Suspect with what it is ranked by.
type suspect struct {
	evidence.Suspect
	typ      debuginfo.Type
	array    debuginfo.Type // of a whole array
	place    int            // of the function in the scope
	distance int            // instructions to the failing one
	whole    bool
}

// collect turns the accesses of one function into suspects.
func (s *scan) collect(place int) {
	f := &s.scope[place]
	exact := f.liveOperands(s.memory)
	for _, a := range f.accesses {
		s.result.MemoryOperands++
		at := a.at
		known, live := exact[a.operand]
		if live && (at.kind == unknown || at.varies) && at.kind != stack {
			at = s.refine(at, known)
		}
		switch {
		case at.kind == stack:
		case at.kind != unknown && !(at.kind == loaded && at.varies):
			s.suspect(place, a, at)
		case live && s.unshared(evidence.Addr(known)), s.readsCell(f, a):
		default:
			s.result.Unresolved++
		}
	}
	s.collectCalls(place)
}

// readsCell reports whether an access is that of the bad value's cell, which
// addCell makes a suspect.
func (s *scan) readsCell(f *scanned, a access) bool {
	b := s.opts.Blame
	return b != nil && b.Cell != nil && b.Loaded.PC == evidence.Addr(f.flow.insts[a.inst].PC) && a.operand.Access == evidence.Read
}

// refine replaces what the flow knows of an address by the number that the
// registers at the failure give, if that is an address of data.
func (s *scan) refine(at value, known uint64) value {
	if at.kind == unknown && !s.isDataOrTLS(known) {
		if s.onStack(evidence.Addr(known)) {
			return value{kind: stack}
		}
		return at
	}
	if at.kind == absolute && !s.sameVariable(known, uint64(at.off)) {
		return at
	}
	if at.kind == loaded {
		at.off, at.varies = int64(known-at.cell.content), false
		return at
	}
	return number(known)
}

// suspect records one access of static data or of a heap word.
func (s *scan) suspect(place int, a access, at value) {
	addr, ok := at.address()
	if !ok {
		return
	}
	kind := evidence.SuspectGlobal
	switch {
	case s.tlsBlockAt(addr) != nil:
		kind = evidence.SuspectTLS
	case s.isData(uint64(addr)):
	case at.kind == loaded && s.heapLike(addr):
		kind = evidence.SuspectHeap
	default:
		return
	}
	f := &s.scope[place]
	pc := evidence.Addr(f.flow.insts[a.inst].PC)
	n := s.nameValue(at, max(a.operand.Size, 1), pc)
	if n.whole && n.size == 0 {
		s.result.Unresolved++
		return
	}
	proof := evidence.FromCore
	unreached := a.at.kind == unknown && f.at >= 0 && a.inst > f.at // by where the registers would have led
	if at.varies || at.kind == loaded || unreached {
		proof = evidence.Inferred
	}
	s.record(kind, n, proof, place, a)
}

func (s *scan) record(kind evidence.SuspectKind, n named, proof evidence.Proof, place int, a access) {
	key := suspectKey{addr: n.addr, size: n.size}
	if n.whole {
		key.name = n.name
	}
	f := &s.scope[place]
	distance := len(f.flow.insts)
	if f.at >= 0 {
		distance = max(a.inst-f.at, f.at-a.inst)
	}
	sus := s.suspects[key]
	if sus == nil {
		sus = &suspect{typ: n.typ, array: n.array, place: place, distance: distance, whole: n.whole}
		sus.Suspect = evidence.Suspect{Kind: kind, Name: n.name, Type: typeName(n.typ), Address: n.addr, Size: n.size, Proof: proof}
		s.suspects[key] = sus
	}
	if proof == evidence.FromCore {
		sus.Proof = proof
	}
	if place == sus.place {
		sus.distance = min(sus.distance, distance)
	}
	sus.Access = sus.Access.Union(a.operand.Access)
	s.use(sus, evidence.Addr(f.flow.insts[a.inst].PC), a.operand.Access)
}

// use adds a line of source; accesses from one line are one use.
func (s *scan) use(sus *suspect, pc evidence.Addr, access evidence.AccessKind) {
	site := s.site(pc)
	for i := range sus.Lines {
		u := &sus.Lines[i]
		if site.Line != 0 && u.Site.Line == site.Line && u.Site.File == site.File && u.Site.Function == site.Function {
			u.Access = u.Access.Union(access)
			return
		}
	}
	sus.Lines = append(sus.Lines, evidence.SuspectUse{Access: access, Site: site})
}

// site names an instruction by its innermost inlined function.
func (w *processView) site(pc evidence.Addr) evidence.Site {
	if calls := w.process.Symbolize(pc, image.AtInstruction); len(calls) > 0 {
		return calls[0].Site
	}
	return evidence.Site{PC: pc}
}

// addCell makes the cell of the bad pointer the strongest suspect.
func (s *scan) addCell() {
	b := s.opts.Blame
	if b == nil || b.Cell == nil {
		return
	}
	key := suspectKey{addr: *b.Cell, size: b.CellSize}
	sus := s.suspects[key]
	if sus == nil {
		sus = &suspect{}
		sus.Suspect = evidence.Suspect{Name: b.CellName, Type: b.CellType, Address: *b.Cell, Size: b.CellSize, Access: evidence.Read}
		s.suspects[key] = sus
	}
	if !slices.ContainsFunc(sus.Lines, func(u evidence.SuspectUse) bool { return u.Site.PC == b.Loaded.PC }) {
		sus.Access = sus.Access.Union(evidence.Read)
		s.use(sus, b.Loaded.PC, evidence.Read)
	}
	sus.Kind = evidence.SuspectCell
	sus.Proof = evidence.Inferred
	if b.CellHolds {
		sus.Proof = evidence.FromCore
	}
	if b.CellTyped != nil {
		sus.typ = b.CellTyped
	}
}

// ranked sorts the suspects. The order: the cell of the bad pointer; what is
// no lock and no stream of the C library; the failing function's before its
// callers' and callees'; what is both read and written there; pointers; what
// is touched nearest to the failing instruction; by address.
func (s *scan) ranked() []evidence.Suspect {
	list := make([]*suspect, 0, len(s.suspects))
	for _, sus := range s.suspects {
		list = append(list, sus)
	}
	slices.SortFunc(list, compareSuspects)
	if len(list) > maxSuspects {
		s.limit("static scan", "%d of %d suspects are listed", maxSuspects, len(list))
		list = list[:maxSuspects]
	}
	out := make([]evidence.Suspect, 0, len(list))
	for i, sus := range list {
		sus.Rank = i
		sus.Value = s.valueOf(sus)
		slices.SortStableFunc(sus.Lines, func(a, b evidence.SuspectUse) int { return cmp.Compare(a.Site.PC, b.Site.PC) })
		out = append(out, sus.Suspect)
	}
	return out
}

func compareSuspects(a, b *suspect) int {
	order := func(yes bool) int {
		if yes {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(order(a.Kind == evidence.SuspectCell), order(b.Kind == evidence.SuspectCell)),
		cmp.Compare(order(!lockLike(a)), order(!lockLike(b))),
		cmp.Compare(a.place, b.place),
		cmp.Compare(order(a.Access == evidence.ReadWrite), order(b.Access == evidence.ReadWrite)),
		cmp.Compare(order(isPointer(a)), order(isPointer(b))),
		cmp.Compare(a.distance, b.distance),
		cmp.Compare(a.Address, b.Address),
		cmp.Compare(a.Size, b.Size),
		strings.Compare(a.Name, b.Name),
	)
}

func isPointer(s *suspect) bool { return s.typ != nil && s.typ.Kind() == debuginfo.KindPointer }

// lockLike are words that are meant to be shared, and the C library's own.
func lockLike(s *suspect) bool {
	switch s.Name {
	case "stdin", "stdout", "stderr", "environ", "optarg", "optind", "std::cout", "std::cerr", "std::cin":
		return true
	}
	text := strings.ToLower(s.Type)
	for _, word := range []string{"mutex", "rwlock", "pthread_cond", "condition_variable", "spinlock", "sem_t", "once_flag", "pthread_once"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return strings.Contains(s.Name, ".__data.") || strings.HasPrefix(s.Name, "guard variable for ")
}

// shown bounds the values in the table of suspects.
var shown = typed.Options{Depth: 1, Elements: 8, StringBytes: 64}

// valueOf is what the suspect held at the end.
func (s *scan) valueOf(sus *suspect) evidence.Value {
	switch {
	case sus.whole && sus.array != nil && strings.HasSuffix(sus.Name, "[...]"):
		return typed.At(s.process, sus.Address, sus.array, shown)
	case sus.whole:
		return evidence.Value{Unavailable: "the index is not known"}
	case sus.typ != nil:
		return typed.At(s.process, sus.Address, sus.typ, shown)
	}
	return rawValue(s.process, sus.Address, sus.Size)
}
