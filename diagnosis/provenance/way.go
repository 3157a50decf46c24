package provenance

import (
	"slices"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86/transfer"
)

// LinkKind says what a step of the way did.
type LinkKind uint8

// The kinds of link.
const (
	// Stored: the value was stored in memory.
	Stored LinkKind = iota
	// Computed: the value was computed; the way follows one operand.
	Computed
	// Offset: the value is an address, its pointer is that of an object, and the offset led out of it; the
	// way follows the offset.
	Offset
	// Bound: the value is a count that a loop made, and the way follows what the loop compared it with.
	Bound
	// Again: it accessed memory outside of the object at which the way ends, as another access had before.
	Again
	// Passed: a call handed the value over in a register.
	Passed
)

// Link is a notable step of the way.
type Link struct {
	Kind LinkKind
	// PC is its instruction.
	PC evidence.Addr
	// Value is the first 8 bytes of the value, if they are known.
	Value uint64
	Known bool
	// Handed: code of the program's own moved all of the value by one instruction, as a value of its type: it does not put text, or a
	// part of another value, in its place.
	Handed bool
	// Spilled: a function kept what a call had passed to it, which is the next link.
	Spilled bool
	// Times is how often the instruction made the value of itself, one after the other.
	Times int
	// at is the step, and to the memory or register that has the value after it.
	at int
	to flow.Location
}

// EndKind says how a way ends.
type EndKind uint8

// The ends.
const (
	// Undecided: the trace does not say how the value was made, or of which of several values.
	Undecided EndKind = iota
	// Constant: an instruction has the value in itself.
	Constant
	// Input: a system call wrote the value.
	Input
	// Returned: a function that is not the program's own returned it, or made it.
	Returned
	// Unset: nothing was stored there since the memory was handed out: by the heap, or as part of a frame.
	Unset
	// Zeroed: calloc handed the memory out, and nothing was stored there since. PC is the call, AccessPC where it was read.
	Zeroed
	// Freed: it was read from a freed object, or through a pointer to one.
	Freed
	// Outside: an access through a pointer to an object was outside of it.
	Outside
	// Left: an access to the frame of a function that had returned. PC is where the function handed out the address, or made it.
	Left
	// Pieces: a word whose bytes several instructions made, each for itself: text, or other words that overlap it.
	Pieces
	// Overwrote: PC stored something over a return address, which only calls store.
	Overwrote
	// Made: it is in a constant table, to which an object that was made at PC points: a virtual function that the
	// object's type does not have.
	Made
	// Loop: a loop counted to it. PC is the condition by which the loop continued, or the jump back to its start if no condition
	// concerns the count.
	Loop
	// Initial: it is of before the trace: a variable's initial value, an argument of the program.
	Initial
	// Tested: the code found that it was 0, by the branch at PC, and handed it on. Nothing had been stored where it came from.
	Tested
	// Reused: the code at PC stored something of another kind in the memory than what AccessPC reads there, as a part of another object.
	Reused
)

// Way leads from a value to its beginning.
type Way struct {
	// Links are the notable steps, the nearest to the failure first.
	Links []Link
	End   EndKind
	// PC is the program's own instruction at which it ends; 0: none.
	PC evidence.Addr
	// From are the bytes that had the value before the trace, of Initial, and ReadPC is the instruction that read them. Value is what
	// it read, if that is known, or the constant, of Constant.
	From   flow.Location
	ReadPC evidence.Addr
	Value  *uint64
	// Call is the function or system call, of Input, Returned and Freed.
	Call string
	// Object is that of Unset, Freed and Outside, and the one of whose address the value was made, of Returned.
	Object *flow.Object
	// Declared is the variable of Outside, where it is no object of the heap, and of Left, if it is known.
	Declared *Declared
	// AccessPC is the place of the access that broke a rule, of Freed, Outside and Left, or that read the value, of Unset and
	// Initial.
	AccessPC evidence.Addr
	// access is the step of the access, of Freed, Outside and Left.
	access int
	// parts are the two values of which the step partsAt made that of whole, at which the way ends, of Undecided; none: it made it otherwise.
	parts   []flow.Location
	whole   flow.Location
	partsAt int
	// Part names the memory, of Unset, as the code that read it does; empty: it is not known.
	Part string
	// Beyond is how far from the object the access was, of Outside: from its end if positive, else from its start.
	Beyond int64
	// Reuse is what the memory was used as, of Reused.
	Reuse *Reuse
	// Narrowed is where the size of the object of Outside lost bits; with them the object would have the bytes that were accessed.
	Narrowed *Narrowing
	// Write: the access of Outside, Freed and Left stored something.
	Write bool
	// Lost: of Freed, a store was made to bytes that had been copied to another object before: that does not have it.
	Lost bool
	// Failing: the access of Freed, Outside and Left is the failing instruction's own.
	Failing bool
	// Overtaken is memory of the way in which another thread stored something else after the value had been read there.
	Overtaken []flow.Location
	// Restored: the same memory, of a variable or of an object, had the value twice, with other values in between: the way leads from there by
	// copies to where it had it before.
	Restored bool
	// Beside are the program's own places that stored the bytes directly before and after those that nothing was stored to, of Unset and Zeroed.
	Beside []evidence.Addr
	// Led is the way of the offset of Outside, or of the one by which code chose an element that nothing had been stored to among others, of
	// Unset, Zeroed and Initial; nil: it is not known.
	Led *Way
}

// Has reports whether the way leads through a step of a kind.
func (w *Way) Has(kind LinkKind) bool {
	return slices.ContainsFunc(w.Links, func(l Link) bool { return l.Kind == kind })
}

// Spoiled is the link that first made of the address of an object a number that is no address of it, where the way ends at a call that made the object; nil: there is
// none. The address itself was good.
func (w *Way) Spoiled() *Link {
	if w.End != Returned || w.Object == nil {
		return nil
	}
	var first *Link
	outside := true // the last known value on the way: that of the failing access is no address
	for i := range w.Links {
		l := &w.Links[i]
		if l.Known {
			outside = evidence.Addr(l.Value) < w.Object.Addr || l.Value-uint64(w.Object.Addr) > w.Object.Size
		}
		if l.Kind == Computed && outside {
			first = l
		}
	}
	return first
}

// Broke reports whether the way ends at an access that broke a rule, before the failing instruction's own.
func (w *Way) Broke() bool {
	return !w.Failing && (w.End == Outside || w.End == Freed || w.End == Left || w.End == Unset)
}

// broke reports whether the way ends at an access to memory that had been freed, or outside of an object.
func (w *Way) broke() bool { return w.End == Outside || w.End == Freed }

// FromMemory reports whether the way is one of a value that was in memory before the trace.
func (w *Way) FromMemory() bool { return w.End == Initial && w.From.Space == transfer.Memory }
