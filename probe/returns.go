package probe

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/value"
	"diagnose/replay"
)

// call is a call whose return is waited for.
type call struct {
	place int
	back  evidence.Addr // where it returns to
	sp    uint64        // the stack pointer after the return
}

// mostPending bounds the calls of a thread that are waited for: a recursion may be as deep as the
// stack is large.
const mostPending = 1 << 20

// called notes a thread at the entry of a function. A call that is over without a return, by
// longjmp or an exception, had its frame where this one is, or below.
func (r *run) called(a *replay.Arrival, x *stop, place int) error {
	sp, known := x.regs.Get(image.RSP)
	if !known {
		return nil
	}
	const word = 8
	back, err := image.Uint64(x.memory, evidence.Addr(sp))
	if err != nil {
		return nil // the call that comes next fails as well
	}
	thread := a.Moment.Thread
	pending := r.calls[thread]
	direct := directCall(x.memory, back)
	for n := len(pending); n > 0 && r.over(&pending[n-1], place, sp+word, evidence.Addr(back), direct); n-- {
		pending = pending[:n-1]
	}
	possible, err := a.AddPoint(evidence.Addr(back))
	if err != nil {
		return err
	}
	if !possible || len(pending) == mostPending {
		r.log.Places[place].Unreachable = true
		return nil
	}
	r.returns[evidence.Addr(back)] = true
	r.calls[thread] = append(pending, call{place, evidence.Addr(back), sp + word})
	return nil
}

// over reports whether a call ended without a return when a thread is at the entry of a function
// whose call returns to back with the stack pointer sp. Its frame is gone if it was below. One in the
// same place is alive only if it called this function as its last action, by a jump: then the same
// call instruction, which calls one function alone, led to both.
func (r *run) over(c *call, place int, sp uint64, back evidence.Addr, direct bool) bool {
	if c.sp != sp {
		return c.sp < sp
	}
	return c.back != back || !direct || r.log.Places[c.place].PC == r.log.Places[place].PC
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
	return code[2] == 0xe8 && !throughMemory
}

// returnedTo handles a thread at an instruction that calls return to. Calls that end by a call of
// another function return with it.
func (r *run) returnedTo(x *stop, pc evidence.Addr) error {
	sp, known := x.regs.Get(image.RSP)
	if !known {
		return nil
	}
	thread := x.stopped.Moment.Thread
	pending := r.calls[thread]
	for len(pending) > 0 && pending[len(pending)-1].sp < sp {
		pending = pending[:len(pending)-1]
	}
	r.calls[thread] = pending
	var frame *value.Frame
	for len(pending) > 0 && pending[len(pending)-1].sp == sp && pending[len(pending)-1].back == pc {
		c := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		r.calls[thread] = pending
		if frame == nil {
			frame = frameAt(x.memory, r.unwinder, &r.thread)
		}
		a := r.ask(c.place, r.log.Places[c.place].PC)
		result := &resultScope{has: a.result != nil}
		if a.result != nil {
			result.result, result.err = returned(x.memory, &x.regs, a.result)
		}
		if err := r.reached(x, c.place, "", a, frame, result); err != nil {
			return err
		}
	}
	return nil
}
