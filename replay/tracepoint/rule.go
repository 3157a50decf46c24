package tracepoint

import (
	"diagnose/evidence"
	"diagnose/image/formula"
)

// Rule is what code in the process does when a thread arrives at an instruction, so that the thread need not stop: where the condition
// holds, it writes an entry. A formula without a value, such as one that reads memory that is not mapped, stops the thread, as if there
// were no rule.
type Rule struct {
	// Condition is not zero where there is an entry; nil: there is one each time.
	Condition *formula.Node
	Values    []Value
	// Numbered: the arrivals at such instructions are numbered together.
	Numbered bool
}

// Value is what an entry has of an expression: the Size bytes at Address, at most MostBytes; or, if Address is nil, Number. Text: the
// characters that Number points to as well, up to a NUL, at most TextBytes.
type Value struct {
	Address *formula.Node
	Size    int
	Number  *formula.Node
	Text    bool
}

const (
	// MostBytes bounds Value.Size, MostValues the values of a rule.
	MostBytes  = 128
	MostValues = 16
	// TextBytes bounds the characters of a Value.
	TextBytes = 80
)

// Entry is an arrival that was handled in the process.
type Entry struct {
	PC evidence.Addr
	// Thread is the thread, Ordinal its last event, and Count the arrivals there since that event. Position is the number of events that
	// all threads had done.
	Thread                   uint32
	Ordinal, Position, Count uint64
	// Number is that of a Rule with Numbered, from 1.
	Number uint64
	Values []Logged
}

// Logged is what an entry has of a Value. Address is that of the bytes, or Value.Number. Data are the bytes or the characters, and
// whatever follows their NUL; nil: there are none. They are valid during the call that the entry was passed to.
type Logged struct {
	Address evidence.Addr
	Data    []byte
}

// size is the room that a value takes in an entry.
func (v *Value) size() int {
	switch {
	case v.Address != nil:
		return word + (v.Size+word-1)&^(word-1)
	case v.Text:
		return word + TextBytes
	}
	return word
}

// size is the room that an entry takes.
func (r *Rule) size() int {
	n := entryValues
	for i := range r.Values {
		n += r.Values[i].size()
	}
	return n
}

const word = 8
