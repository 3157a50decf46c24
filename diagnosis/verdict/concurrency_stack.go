package verdict

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/unwind"
	"diagnose/image/value"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

// Bounds of the stack memory that is looked at.
const (
	mostVariables     = 8
	mostStackParts    = 24 // of one variable
	mostFramesWalked  = 64
	mostWordsSearched = 1 << 13 // of one thread's stack, for pointers
	mostWordsFollowed = 32      // of a heap object that a stack has a pointer to
)

// outermostFrame is a thread's frame that is there from the thread's beginning to its end, main's
// or that of the function it runs: what lies in it was no other variable's before.
type outermostFrame struct {
	thread   uint32 // its number in the recording
	failing  bool
	function string // as the program has it
	frame    unwind.Frame
	level    int // of its inline chain
	module   *image.Module
	low      evidence.Addr // the stack's live part begins here
}

// stackPlace is where a target lies that is a part of a variable of such a frame.
type stackPlace struct {
	thread   uint32
	function string
	cfa      evidence.Addr
	// moves: it keeps its distance from the CFA wherever that is. What the function aligns
	// keeps it for a whole number of alignments only.
	moves bool
	// slot is the name of the target that the frame's return address is, returns what that
	// is; empty: it is not known.
	slot    string
	returns uint64
	module  *image.Module // of the function
}

// stackVariables are the variables on stacks that threads share.
type stackVariables struct {
	progress *progress
	rec      *record.Recording
	process  *image.Process
	objects  func(evidence.Addr) *evidence.HeapObject
	// places says of targets on stacks, by their names, where they lie.
	places map[string]stackPlace
	locks  []watchtrace.Target
}

// parts are the parts of variables that threads share by references to the stack of
// one of them: those in memory of the failing thread's outermost frame, and those of other
// threads' to which some thread's live stack points from elsewhere.
func (s *stackVariables) parts() []watchtrace.Target {
	if slices.Equal(s.rec.Log.Threads(), []uint32{1}) {
		return nil
	}
	frames, err := outermostFrames(s.process, s.rec)
	if err != nil {
		s.progress.limit(evidence.Limit{Code: evidence.LimitStackVariables, Reason: err.Error()})
		return nil
	}
	var list []watchtrace.Target
	left := mostVariables
	for _, f := range frames {
		if s.nameTaken(f) {
			continue
		}
		variables := s.shared(frames, f)
		if len(variables) > left {
			s.progress.limit(evidence.Limit{Code: evidence.LimitManyStackVariables, Count: mostVariables})
		}
		if variables = variables[:min(len(variables), left)]; len(variables) == 0 {
			continue
		}
		left -= len(variables)
		place := stackPlace{thread: f.thread, function: f.function, cfa: f.frame.CFA, moves: true, module: f.module}
		list = append(list, s.returnSlot(&place))
		for _, v := range variables {
			place.moves = v.moves
			parts, locks := v.parts(evidence.ShortName(f.function))
			for _, t := range slices.Concat(parts, locks) {
				s.places[t.Name] = place
			}
			list = append(list, parts...)
			s.addLocks(locks)
		}
	}
	return list
}

// shared are the variables of a frame that may be shared, those that other threads
// have pointers to first, and those without a pointer only of the thread that failed: the
// others' pointers may be gone.
func (s *stackVariables) shared(frames []outermostFrame, f outermostFrame) []stackVariable {
	pointed := s.pointersInto(frames, f)
	if len(pointed) == 0 && !f.failing {
		return nil
	}
	var list []stackVariable
	for _, v := range variablesOf(s.process, f) {
		end := v.addr + evidence.Addr(v.typ.Size())
		v.shared = slices.ContainsFunc(pointed, func(to evidence.Addr) bool { return to >= v.addr && to < end })
		if v.shared || f.failing {
			list = append(list, v)
		}
	}
	rank := func(v stackVariable) int {
		switch {
		case v.shared:
			return 0
		case v.parameter:
			return 2
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b stackVariable) int { return cmp.Compare(rank(a), rank(b)) })
	return list
}

// nameTaken reports whether another thread that runs the same function has its variables
// looked at already: the names would be the same.
func (s *stackVariables) nameTaken(f outermostFrame) bool {
	place, taken := s.places[slotName(f.function)]
	return taken && place.thread != f.thread
}

func slotName(function string) string { return evidence.ShortName(function) + "'s return address" }

// returnSlot is where a frame has its return address, right below its CFA (System V ABI,
// section 3.2.2): the call that writes it begins the frame.
func (s *stackVariables) returnSlot(place *stackPlace) watchtrace.Target {
	t := watchtrace.Target{Name: slotName(place.function), Addr: place.cfa - wordSize, Size: wordSize, Writes: true,
		Identity: evidence.Identity{Kind: evidence.IdentityReturn, Function: evidence.ShortName(place.function)}}
	place.slot = t.Name
	if place.returns, _ = wordAt(s.process, t.Addr, wordSize); place.returns == 0 {
		place.slot = "" // it is not in the core
	}
	s.places[t.Name] = *place
	return t
}

// outermostFrames are those of a process's threads, the failing thread's first. The error
// is of a recording whose threads are not known.
func outermostFrames(p *image.Process, rec *record.Recording) ([]outermostFrame, error) {
	summary, err := rec.Log.Summarize()
	if err != nil {
		return nil, err
	}
	numbers := map[int]uint32{}
	for _, t := range summary.Threads {
		numbers[int(t.TID)] = t.Index
	}
	u := unwind.New(p)
	var list []outermostFrame
	for i := range p.Threads[:min(len(p.Threads), mostThreadsScanned)] {
		t := &p.Threads[i]
		f, ok := outermostOf(p, u.Walk(t, mostFramesWalked))
		if f.thread = numbers[t.Ref.TID]; !ok || f.thread == 0 {
			continue
		}
		if f.failing = i == p.Failing; f.failing {
			list = slices.Insert(list, 0, f)
			continue
		}
		list = append(list, f)
	}
	return list, nil
}

// outermostOf finds the outermost frame of the program's own in a stack that was walked to
// its end, without guesses; where main has returned, the frame that it had, whose variables
// are gone.
func outermostOf(p *image.Process, s unwind.Stack) (outermostFrame, bool) {
	if len(s.Frames) == 0 || s.Truncated {
		return outermostFrame{}, false
	}
	for i := len(s.Frames) - 1; i >= 0; i-- {
		f := s.Frames[i]
		if f.CFA == 0 || f.Kind == evidence.SignalFrame || f.Trust == evidence.TrustScan {
			continue
		}
		calls := p.Symbolize(f.PC(), f.Lookup)
		for level := len(calls) - 1; level >= 0; level-- {
			switch site := &calls[level].Site; {
			case endsProcess[site.Function] && i+1 < len(s.Frames):
				return outermostFrame{function: "main", frame: unwind.Frame{CFA: f.CFA}}, true
			case endsThread[site.Function]:
				return outermostFrame{}, false
			case site.Function != "" && site.File != "" && !image.LibraryCode(site):
				return outermostFrame{function: site.Function, frame: f, level: level, module: p.ModuleAt(f.PC()), low: lowestOf(s.Frames[:i+1])}, true
			}
		}
	}
	return outermostFrame{}, false
}

// lowestOf is the lowest stack pointer on the stack of the last of some frames. Inner frames may be
// on another: that of a signal handler, of a goroutine.
func lowestOf(frames []unwind.Frame) evidence.Addr {
	low := frames[len(frames)-1].Registers.SP()
	for i := len(frames) - 2; i >= 0 && frames[i].Registers.SP() <= low; i-- {
		low = frames[i].Registers.SP()
	}
	return low
}

// What runs behind a thread's function, in the C library: exit is called where main was, so
// that its frame begins where main's did.
var (
	endsProcess = map[string]bool{"exit": true, "__GI_exit": true}
	endsThread  = map[string]bool{"__call_tls_dtors": true, "__GI___call_tls_dtors": true, "__nptl_deallocate_tsd": true, "__run_exit_handlers": true}
)

// stackVariable is one that a frame has in memory.
type stackVariable struct {
	name      string
	addr      evidence.Addr
	typ       debuginfo.Type
	moves     bool // see stackPlace
	parameter bool
	shared    bool // a pointer of another thread leads to it
}

// variablesOf are the variables of a frame's own function that lie in memory of the frame.
// Compilers' own, as those of range loops, are left out.
func variablesOf(p *image.Process, f outermostFrame) []stackVariable {
	if f.module == nil {
		return nil
	}
	info, err := f.module.Debug()
	if err != nil || info == nil {
		return nil // the frame has no names then
	}
	pc := f.module.LinkAddr(f.frame.LookupPC())
	calls, err := info.CallsAt(pc)
	if err != nil || f.level >= len(calls) {
		return nil
	}
	variables, err := info.VariablesAt(calls[f.level], pc)
	if err != nil {
		return nil
	}
	var list []stackVariable
	for _, v := range variables {
		if v.Name == "" || strings.HasPrefix(v.Name, "__") || v.Type == nil || v.Type.Size() <= 0 {
			continue
		}
		if x, ok := f.locate(p, v); ok && !slices.ContainsFunc(list, func(o stackVariable) bool { return o.name == x.name }) {
			list = append(list, x)
		}
	}
	return list
}

// locate finds a variable in the frame's memory; false: it is not there.
func (f *outermostFrame) locate(p *image.Process, v debuginfo.Variable) (stackVariable, bool) {
	const elsewhere = 1 << 12
	frame := &value.Frame{Process: p, Module: f.module, Registers: f.frame.Registers, CFA: f.frame.CFA, Lookup: f.frame.Lookup}
	where, err := value.Lives(frame, v)
	end := where.Addr + evidence.Addr(v.Type.Size())
	if err != nil || !where.InMemory || where.Addr < f.low || end > f.frame.CFA || end < where.Addr {
		return stackVariable{}, false
	}
	frame.CFA += elsewhere
	moved, err := value.Lives(frame, v)
	return stackVariable{name: v.Name, addr: where.Addr, typ: v.Type, parameter: v.Parameter,
		moves: err == nil && moved.Addr == where.Addr+elsewhere}, true
}

// insideAtomic are the members by which libstdc++'s atomics have their value.
var insideAtomic = []string{"._M_i", "._M_p", "._M_b", "._M_base"}

// insideLibraryLock are the members by which the locks of the C library and of libstdc++
// have what they begin with.
var insideLibraryLock = []string{".__data.__lock", ".__data.__readers", "._M_impl._M_rwlock", "._M_rwlock", "._M_mutex"}

// parts cuts a variable into members, as far as its type says, and into words of many small
// elements. Locks are told apart, each by what it begins with.
func (v *stackVariable) parts(function string) (list, locks []watchtrace.Target) {
	group := fmt.Sprintf("%s's %s", function, v.name)
	variable := evidence.Identity{Kind: evidence.IdentityStack, Function: function, Name: v.name}
	for at, size := int64(0), v.typ.Size(); at < size && len(list) < mostStackParts; {
		path, leaf, ok := value.Path(v.typ, at, 0)
		if ok && leaf != nil && leaf.Kind() == debuginfo.KindStruct {
			path, leaf, ok = value.Path(v.typ, at, wordSize) // an empty base lies where the first member does
		}
		if !ok || leaf == nil || leaf.Size() <= 0 || leaf.Kind() == debuginfo.KindStruct {
			at++ // padding
			continue
		}
		t := watchtrace.Target{Addr: v.addr + evidence.Addr(at), Group: group, Type: leaf.Name(), Size: int(leaf.Size())}
		for _, inside := range insideAtomic {
			path = strings.TrimSuffix(path, inside)
		}
		t.Identity = variable.At(path)
		if t.Name = group + path; insideLock(t) {
			for _, inside := range insideLibraryLock {
				path = strings.TrimSuffix(path, inside)
			}
			t.Name, t.Identity = group+path, variable.At(path)
			if !insideLock(t) {
				locks = append(locks, t)
			}
			at += int64(t.Size)
			continue
		}
		if leaf.Size() > wordSize || narrow(path, leaf) {
			offset := fmt.Sprintf("+%#x", at)
			t.Name, t.Type, t.Size, t.Identity = group+offset, "", int(min(wordSize-at%wordSize, size-at)), variable.At(offset)
		}
		list, at = append(list, t), at+int64(t.Size)
	}
	return list, locks
}

func (s *stackVariables) addLocks(locks []watchtrace.Target) {
	for _, l := range locks {
		if !slices.ContainsFunc(s.locks, func(o watchtrace.Target) bool { return o.Name == l.Name }) {
			s.locks = append(s.locks, l)
		}
	}
}

// nameLocks gives the locks of a run's log that lie on stacks the names of the variables
// that they are, where that run has them.
func nameLocks(log *evidence.AccessLog, locks []watchtrace.Target) {
	name := func(l *evidence.Lock) {
		for i := range locks {
			if l.Name == "" && locks[i].Absent == "" && locks[i].Addr == l.Address {
				l.Name = locks[i].Name
			}
		}
	}
	for _, set := range log.LockSets {
		for i := range set {
			name(&set[i])
		}
	}
	for i := range log.Acquisitions {
		name(&log.Acquisitions[i].Lock)
	}
}

// pointersInto are addresses within a frame that another thread has on its live stack, in
// a register, or in a heap object that one of these points to.
func (s *stackVariables) pointersInto(frames []outermostFrame, into outermostFrame) []evidence.Addr {
	var list []evidence.Addr
	note := func(v evidence.Addr) {
		if v >= into.low && v < into.frame.CFA {
			list = append(list, v)
		}
	}
	for _, f := range frames {
		if f.thread == into.thread {
			continue
		}
		words := wordsAt(s.process, f.low, min(int(f.frame.CFA-f.low)/wordSize, mostWordsSearched))
		for r := image.RAX; r <= image.R15; r++ {
			if v, ok := f.frame.Registers.Get(r); ok {
				words = append(words, evidence.Addr(v))
			}
		}
		slices.Sort(words)
		for _, v := range slices.Compact(words) {
			if note(v); s.objects == nil {
				continue
			}
			if o := s.objects(v); o != nil && v >= o.Addr && v < o.Addr+evidence.Addr(o.Size) {
				for _, held := range wordsAt(s.process, o.Addr, min(int(o.Size/wordSize), mostWordsFollowed)) {
					note(held)
				}
			}
		}
	}
	return list
}

// wordsAt are those at an address, as far as they are known.
func wordsAt(p *image.Process, at evidence.Addr, most int) []evidence.Addr {
	data := make([]byte, most*wordSize)
	n, _ := p.ReadMemory(at, data) // as far as it goes
	list := make([]evidence.Addr, n/wordSize)
	for i := range list {
		list[i] = evidence.Addr(binary.LittleEndian.Uint64(data[i*wordSize:]))
	}
	return list
}

// placeIn finds the targets that lie on stacks in another run, of which the frames are
// given, or why there are none.
func (s *stackVariables) placeIn(targets []watchtrace.Target, rec *record.Recording, there []outermostFrame, err error) {
	for i := range targets {
		t, is := s.places[targets[i].Name]
		if !is {
			continue
		}
		by, lost := t.movedBy(there)
		if err != nil {
			lost = err
		}
		if lost != nil {
			targets[i].Absent = fmt.Sprintf("%s: %v", filepath.Base(rec.Dir), lost)
		}
		targets[i].Addr += by
	}
}

// movedBy is how much higher the same frame of another run lies.
func (t stackPlace) movedBy(there []outermostFrame) (evidence.Addr, error) {
	const alignment = 64 // of variables, at most
	name := evidence.ShortName(t.function)
	for _, f := range there {
		if f.thread != t.thread || f.function != t.function {
			continue
		}
		by := f.frame.CFA - t.cfa
		if !t.moves && by%alignment != 0 {
			return 0, fmt.Errorf("the frame of %s is aligned otherwise", name)
		}
		return by, nil
	}
	return 0, fmt.Errorf("the frame of %s in thread %d is gone", name, t.thread)
}

// frameTime is when a frame was there in a run: from the call that began it until another
// call of its thread had its place.
type frameTime struct {
	call evidence.Access
	next *evidence.Access // nil: it was there at the end
}

// ofFrames leaves out of a log what was done to a frame's place while the frame was not
// there: that was to another variable, or none. Where the call is not known, all of it goes.
func (s *stackVariables) ofFrames(log *evidence.AccessLog) {
	times := map[string]frameTime{}
	for i := range log.Accesses {
		a := &log.Accesses[i]
		name := log.Variables[a.Variable].Name
		switch place, is := s.places[name]; {
		case !is || place.slot != name || a.Thread != place.thread:
		case a.New == place.returns:
			times[name] = frameTime{call: *a}
		default:
			if t, begun := times[name]; begun && t.next == nil {
				t.next = a
				times[name] = t
			}
		}
	}
	log.Accesses = slices.DeleteFunc(slices.Clone(log.Accesses), func(a evidence.Access) bool {
		name := log.Variables[a.Variable].Name
		place, is := s.places[name]
		if !is {
			return false
		}
		t, known := times[place.slot]
		return !known || name == place.slot || !t.has(&a, place.module != nil && s.process.ModuleAt(a.PC) == place.module)
	})
}

// has reports whether the frame was there at an access; own: the access is of the code that
// the frame's function is in. What its thread did between the same two events as the call,
// other code may have done before it.
func (t *frameTime) has(a *evidence.Access, own bool) bool {
	if a.Thread != t.call.Thread {
		return a.Position >= t.call.Position && (t.next == nil || a.Position <= t.next.Position)
	}
	switch {
	case a.Ordinal < t.call.Ordinal || t.next != nil && a.Ordinal > t.next.Ordinal:
		return false
	case a.Ordinal == t.call.Ordinal || t.next != nil && a.Ordinal == t.next.Ordinal:
		return own
	}
	return true
}
