package probe

import (
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/value"
	"diagnose/replay"
)

// call is a call whose return is waited for.
type call struct {
	places []int // of the function that was called
	entry  evidence.Addr
	back   evidence.Addr // where it returns to
	sp     uint64        // the stack pointer after the return
	thread uint32
	number uint64 // Row.Call
	// direct: the call instruction calls one function alone.
	direct bool
	// doubtful: the thread was nearer to the stack's start since. The call was left, or has a stack of its own in the same
	// mapping.
	doubtful bool
	// over: it has returned, or was left.
	over bool
}

// returns are the calls whose returns are waited for.
type returns struct {
	log *Log
	// at are the instructions that calls return to.
	at map[evidence.Addr]bool
	// bySP are the calls by the stack pointer after their return. Several are one call of a function that ends by calling another;
	// the outermost is first. No two stacks have an address in common, so a call is found wherever its thread has been in between.
	bySP map[uint64][]*call
	// nested are the calls of a stack that are not doubtful, the innermost last.
	nested map[stack][]*call
	count  int
}

// stack is where the frames of a thread are: a mapping by its end, 0 if it is not known. A thread may have several, those of
// coroutines and of signal handlers.
type stack struct {
	thread uint32
	end    evidence.Addr
}

func newReturns(l *Log) returns {
	return returns{log: l, at: map[evidence.Addr]bool{}, bySP: map[uint64][]*call{}, nested: map[stack][]*call{}}
}

// word is the size of a return address in bytes.
const word = 8

// mostPending bounds the calls that are waited for: a recursion may be as deep as the stack is large.
const mostPending = 1 << 20

// called notes a thread at the entry of a function, of which these are the places.
func (r *run) called(a *replay.Arrival, x *stop, places []int) error {
	sp, known := x.regs.Get(image.RSP)
	if !known {
		return nil
	}
	back, err := image.Uint64(x.memory, evidence.Addr(sp))
	if err != nil {
		return nil // the call that comes next fails as well
	}
	c := &call{places: places, entry: a.Moment.PC, back: evidence.Addr(back), sp: sp + word, thread: a.Moment.Thread, number: r.calls, direct: directCall(x.memory, back)}
	at := r.stackAt(c.thread, c.sp)
	r.returns.outside(at, c.sp)
	r.returns.replaces(c)
	possible, err := a.AddPoint(c.back)
	if err != nil {
		return err
	}
	if !possible || r.returns.count == mostPending {
		r.returns.missed(c)
		return nil
	}
	r.returns.add(at, c)
	return nil
}

// stackAt returns the stack that has an address.
func (r *run) stackAt(thread uint32, sp uint64) stack {
	if m := r.process.MappingAt(evidence.Addr(sp)); m != nil {
		return stack{thread, m.End}
	}
	return stack{thread: thread}
}

func (r *returns) add(at stack, c *call) {
	r.at[c.back] = true
	r.bySP[c.sp] = append(r.bySP[c.sp], c)
	r.nested[at] = append(r.nested[at], c)
	r.count++
}

// outside notes a thread outside of all frames below sp: the calls there were left by longjmp or an exception, or have another
// stack.
func (r *returns) outside(at stack, sp uint64) {
	list := r.nested[at]
	for n := len(list); n > 0 && (list[n-1].over || list[n-1].sp < sp); n-- {
		list[n-1].doubtful = true
		list = list[:n-1]
	}
	r.nested[at] = list
}

// replaces removes the calls that ended without a return when a call begins in their place. One is alive only if it called this
// function as its last action, by a jump: then the same call instruction, which calls one function alone, led to both.
func (r *returns) replaces(c *call) {
	list := r.bySP[c.sp]
	from := 0
	if len(list) > 0 && c.direct && list[0].thread == c.thread && list[0].back == c.back {
		if from = slices.IndexFunc(list, func(x *call) bool { return x.entry == c.entry }); from < 0 {
			return
		}
	}
	r.left(c.sp, from)
}

// left removes calls that ended without a return.
func (r *returns) left(sp uint64, from int) {
	list := r.bySP[sp]
	for _, c := range list[from:] {
		c.over = true
		r.unseen(c)
	}
	r.count -= len(list) - from
	if from == 0 {
		delete(r.bySP, sp)
	} else {
		r.bySP[sp] = list[:from]
	}
}

func (r *returns) unseen(c *call) {
	for _, i := range c.places {
		r.log.Places[i].Left++
	}
}

func (r *returns) missed(c *call) {
	for _, i := range c.places {
		r.log.Places[i].Missed++
	}
}

// finish counts the doubtful calls. The others had not ended.
func (r *returns) finish() {
	for _, list := range r.bySP {
		for _, c := range list {
			if c.doubtful {
				r.unseen(c)
			}
		}
	}
}

// take removes the calls that return with this stack pointer, the innermost first.
func (r *returns) take(sp uint64) []*call {
	list := r.bySP[sp]
	delete(r.bySP, sp)
	r.count -= len(list)
	for _, c := range list {
		c.over = true
	}
	slices.Reverse(list)
	return list
}

// directCall reports whether the instruction before an address is a call of a fixed address: e8 with
// 32 bits of displacement. The one other call in which that byte can be there is through memory, with
// the byte as the operand's second one: ff 14 e8 or ff 94 e8 (Intel SDM volume 2, 2.1.5).
func directCall(m image.Memory, back uint64) bool {
	const length = 7
	var code [length]byte
	if _, err := m.ReadMemory(evidence.Addr(back-length), code[:]); err != nil {
		return false
	}
	throughMemory := code[0] == 0xff && (code[1] == 0x14 || code[1] == 0x94)
	return code[2] == callOpcode && !throughMemory
}

// returnedTo handles a thread at an instruction that calls return to. Calls that end by a call of
// another function return with it.
func (r *run) returnedTo(x *stop, pc evidence.Addr) error {
	sp, known := x.regs.Get(image.RSP)
	if !known {
		return nil
	}
	thread := x.stopped.Moment.Thread
	r.returns.outside(r.stackAt(thread, sp), sp)
	list := r.returns.bySP[sp]
	if len(list) == 0 || list[0].back != pc {
		return nil
	}
	// A return leaves its address below the stack pointer. Other ways to the instruction are jumps.
	if back, err := image.Uint64(x.memory, evidence.Addr(sp-word)); err != nil || evidence.Addr(back) != pc {
		r.returns.left(sp, 0)
		return nil
	}
	var frame *value.Frame
	for _, c := range r.returns.take(sp) {
		if (c.doubtful || c.thread != thread) && !c.direct {
			r.returns.missed(c) // it may have been another function, called through the same pointer
			continue
		}
		if frame == nil {
			frame = r.frameAt(x.memory)
		}
		r.call = c.number
		for _, i := range c.places {
			if err := r.returned(x, i, frame); err != nil {
				return err
			}
		}
	}
	return nil
}

// returned adds a row for the return of a place's function.
func (r *run) returned(x *stop, place int, frame *value.Frame) error {
	a := r.ask(place, r.log.Places[place].PC)
	result := &resultScope{has: a.result != nil}
	if a.result != nil {
		result.result, result.err = returned(x.memory, &x.regs, a.result)
	}
	return r.reached(x, place, "", a, frame, result)
}
