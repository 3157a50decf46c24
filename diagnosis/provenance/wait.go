package provenance

import (
	"slices"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// BlindWait is a wait for a condition variable after which a thread continued, although the condition for which it waits did not hold yet: another thread had
// been faster, or no thread had signalled (POSIX allows that a wait returns without a signal). The condition has to be tested again.
type BlindWait struct {
	// PC is the program's call, Tested the branch that led to it.
	PC, Tested evidence.Addr
	// Words are those that the test read.
	Words []TestedWord
}

// TestedWord is memory that a test read. Name is what the code calls it; empty: that is not known.
type TestedWord struct {
	flow.Location
	Name string
}

// untimed are the waits that return for a signal, or for no reason.
var untimed = []string{"pthread_cond_wait", "cnd_wait"}

// locks are the functions that take a lock.
var locks = []string{"pthread_mutex_lock", "pthread_mutex_trylock", "pthread_mutex_timedlock", "pthread_mutex_clocklock"}

// returned is where a wait returned: its step, and the thread's next one.
type returned struct{ at, next int }

// Continued looks at the last wait of a thread before step n; nil: it made none, it had not to wait any more, or that is not known. gaveUp is the step by which the
// thread gave up; -1: it did not. A test that decided that is none by which it would have waited again.
func Continued(t *flow.Trace, p Program, n, gaveUp int) *BlindWait {
	decided := -1
	if gaveUp >= 0 {
		if branch, known := newFrames(t, p).decider(gaveUp); known {
			decided = branch
		}
	}
	for _, r := range waitsBefore(t, n, 1) {
		if b := continued(t, p, r, n, decided); b != nil && !reads(t, b.Words, n) {
			return b
		}
	}
	return nil
}

// ContinuedTo looks at the waits after which a thread stored something that has a part in a failure, the latest first.
func ContinuedTo(t *flow.Trace, p Program, reached *Reached) (list []*BlindWait) {
	const most = 64 // waits of a thread
	stores := map[uint32][]int{}
	for _, n := range slices.Sorted(slices.Values(reached.stores)) {
		thread := t.Step(n).Thread
		stores[thread] = append(stores[thread], n)
	}
	var uses []storedAfter
	for _, list := range stores {
		for _, r := range waitsBefore(t, list[len(list)-1], most) {
			i, _ := slices.BinarySearch(list, r.next)
			uses = append(uses, storedAfter{r, list[i]})
		}
	}
	slices.SortFunc(uses, func(a, b storedAfter) int { return b.at - a.at })
	for i, u := range uses {
		if i > 0 && u.store == uses[i-1].store { // it had waited again by then
			continue
		}
		if b := continued(t, p, u.returned, u.round(t), -1); b != nil {
			list = append(list, b)
		}
	}
	return list
}

// storedAfter is a store that a thread made after a wait.
type storedAfter struct {
	returned
	store int
}

// round is the last step of what the thread did after the wait: before it took a lock or waited again. A copy that it made there may be tested after the store.
func (u *storedAfter) round(t *flow.Trace) int {
	const most = 100_000 // steps
	last := u.store
	for at, looked := t.Next(u.store), 0; at >= 0 && looked < most; at, looked = t.Next(at), looked+1 {
		if s := t.Step(at); s.Library && (slices.Contains(locks, s.Call) || slices.Contains(untimed, s.Call)) {
			break
		}
		last = at
	}
	return last
}

// waitsBefore are the last waits of a thread before step n, the last one first.
func waitsBefore(t *flow.Trace, n, most int) (list []returned) {
	for next, at := n, t.Previous(n); at >= 0 && len(list) < most; next, at = at, t.Previous(at) {
		if s := t.Step(at); s.Library && slices.Contains(untimed, s.Call) {
			list = append(list, returned{at, next})
		}
	}
	return list
}

// continued looks at a wait that returned before step n of its thread. decided is a branch that does not count as a test after it; -1: there is none.
func continued(t *flow.Trace, p Program, r returned, n, decided int) *BlindWait {
	at, after := r.at, r.next
	call := t.Previous(at)
	for call >= 0 && (t.Step(call).Inst == nil || t.Step(call).Inst.Flow != x86.FlowCall || !p.Own(t.Step(call).PC)) {
		call = t.Previous(call)
	}
	if call < 0 {
		return nil
	}
	w := waitSearch{follower: newFollower(t, p), locked: call, returned: after}
	for w.locked >= 0 && !t.Step(w.locked).Library {
		w.locked = t.Previous(w.locked)
	}
	const most = 8 // branches
	frames := newFrames(t, p)
	for k := call; len(w.branches) < most; {
		branch, known := frames.decider(k)
		if !known {
			return nil
		}
		if branch <= w.locked {
			break
		}
		if !w.holds(branch) {
			return nil
		}
		w.branches = append(w.branches, branch)
		k = branch
	}
	if len(w.branches) == 0 || len(w.words) == 0 || w.testedAgain(at, n, decided) {
		return nil
	}
	return &BlindWait{PC: t.Step(call).PC, Tested: w.ownPlace(w.branches[0]), Words: w.words}
}

// waitSearch judges what a thread tested between taking the lock, at step locked, and its wait, by what memory has when the wait has returned.
type waitSearch struct {
	*follower
	locked, returned int
	branches         []int
	words            []TestedWord
}

// reads reports whether step n reads a word of a test, so that the thread may be about to test it again.
func reads(t *flow.Trace, words []TestedWord, n int) bool {
	s := t.Step(n)
	if s.Inst == nil {
		return false
	}
	for k := range s.Inst.Operands {
		addr, known := t.Address(n, k)
		if s.Inst.Operands[k].IsMemory && known && slices.ContainsFunc(words, func(o TestedWord) bool { return o.Addr == addr }) {
			return true
		}
	}
	return false
}

// testedAgain reports whether branches between the wait and step n, the first ones and without one that decided the failure, tested all of the words: the thread
// did what it does if it has nothing to wait for.
func (w *waitSearch) testedAgain(wait, n, decided int) bool {
	const most = 1000 // branches
	later := waitSearch{follower: w.follower, locked: wait, returned: w.returned}
	for at, looked := w.returned, 0; at >= 0 && at <= n && looked < most; at = w.trace.Next(at) {
		if s := w.trace.Step(at); s.Inst != nil && s.Inst.Flow == x86.FlowBranch && w.program.Own(s.PC) && at != decided {
			later.holds(at)
			looked++
		}
	}
	return !slices.ContainsFunc(w.words, func(o TestedWord) bool {
		return !slices.ContainsFunc(later.words, func(l TestedWord) bool { return l.Addr == o.Addr })
	})
}

// holds reports whether a branch would go the same way again; false as well if that is not known.
func (w *waitSearch) holds(branch int) bool {
	s := w.trace.Step(branch)
	code, ok := condition(s.Inst)
	next := w.trace.Next(branch)
	if !ok || next < 0 || !s.Inst.HasTarget {
		return false
	}
	taken := uint64(w.trace.Step(next).PC) == s.Inst.Target
	flag := transfer.Zero
	if code>>1 == below {
		flag = transfer.Carry
	}
	d := w.trace.Define(flow.Location{Thread: s.Thread, Space: transfer.Flag, Off: flag, Size: 1}, branch)
	if d.At <= w.locked || w.trace.Step(d.At).Inst == nil {
		return false
	}
	test := w.trace.Step(d.At).Inst
	if !slices.Contains(compares, test.Op) || len(test.Operands) < 2 {
		return false
	}
	a, known := w.now(d.At, 0)
	b, knownToo := w.now(d.At, 1)
	if !known || !knownToo {
		return false
	}
	again, ok := goes(code, test.Op, a, b, test.Operands[0].Size)
	return ok && again == taken
}

// now is what an operand of step n would be if the step were made after the wait.
func (w *waitSearch) now(n, k int) (uint64, bool) {
	o := &w.trace.Step(n).Inst.Operands[k]
	size := w.trace.Step(n).Inst.Operands[0].Size
	switch {
	case o.IsImm:
		return low64(uint64(o.Imm), size), true
	case o.IsMemory:
		addr, known := w.trace.Address(n, k)
		if !known {
			return 0, false
		}
		return w.word(flow.Memory(addr, size), n)
	case o.Reg.General():
		return w.register(flow.Register(w.trace.Step(n).Thread, o.Reg, size), n)
	}
	return 0, false
}

// word is what memory that step n read has now. Its own stack a thread alone writes to: of a copy of another word it is that one.
func (w *waitSearch) word(l flow.Location, n int) (uint64, bool) {
	if w.trace.OnStack(l.Addr) {
		if v, known := w.register(l, n); known {
			return v, true
		}
		return w.value(l, n)
	}
	w.words = append(w.words, TestedWord{l, useSearch{w.follower}.name(l, n)})
	return w.value(l, w.returned)
}

// register is what a register, or a word of the thread's stack, would have now that step n read.
func (w *waitSearch) register(l flow.Location, n int) (uint64, bool) {
	const most = 64 // definitions
	for range most {
		d := w.trace.Define(l, n)
		switch {
		case d.At <= w.locked, d.Kind == flow.Constant:
			return w.value(l, n)
		case d.Part != l || d.Kind != flow.Copied:
			return 0, false
		case d.From[0].Space == transfer.Memory && !w.trace.OnStack(d.From[0].Addr):
			return w.word(d.From[0], d.At)
		}
		l, n = d.From[0], d.At
	}
	return 0, false
}

// The codes of conditions, without their last bit, which turns them round (Intel SDM, volume 1, appendix B).
const (
	below        = 1
	equal        = 2
	belowOrEqual = 3
	sign         = 4
	less         = 6
	lessOrEqual  = 7
)

// condition is the code of the condition by which an instruction jumps.
func condition(inst *x86.Inst) (code uint8, ok bool) {
	b := inst.Bytes
	for len(b) > 1 && (b[0] == 0x2e || b[0] == 0x3e || b[0] == 0xf2) { // hints
		b = b[1:]
	}
	switch {
	case inst.Flow != x86.FlowBranch || len(b) == 0:
	case b[0]&0xf0 == 0x70:
		return b[0] & 0xf, true
	case b[0] == 0x0f && len(b) > 1 && b[1]&0xf0 == 0x80:
		return b[1] & 0xf, true
	}
	return 0, false
}

// compares are the instructions that goes knows.
var compares = []string{"cmp", "test", "and", "or"}

// goes reports whether a jump with a condition is taken after one of compares with two values of size bytes; ok is false for conditions that are not looked at.
func goes(code uint8, op string, a, b uint64, size int) (taken, ok bool) {
	shift := uint(64 - 8*size)
	x, y := int64(a<<shift), int64(b<<shift)
	switch op {
	case "test", "and": // as a comparison with 0: they leave no carry and no overflow
		x, y = x&y, 0
	case "or":
		x, y = x|y, 0
	}
	switch code >> 1 {
	case below:
		taken = uint64(x) < uint64(y)
	case equal:
		taken = x == y
	case belowOrEqual:
		taken = uint64(x) <= uint64(y)
	case sign:
		taken = x-y < 0
	case less:
		taken = x < y
	case lessOrEqual:
		taken = x <= y
	default:
		return false, false
	}
	return taken != (code&1 == 1), true
}
