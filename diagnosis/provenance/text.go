package provenance

import (
	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86/transfer"
)

// Memory says what gave memory its value that the trace has no store to.
type Memory uint8

// The kinds of such memory.
const (
	// Earlier: it may have been stored to before the trace.
	Earlier Memory = iota
	// OfFile: the program's file, or a library's.
	OfFile
	// Started: the kernel, when it started the program: arguments and environment.
	Started
)

// Text says what the bytes of a text are copies of.
type Text struct {
	// Constant: all are constants of instructions, or of memory OfFile.
	Constant bool
	// Whole: all, with the zero byte after them, are copies of one text that was input or Started, byte after byte.
	Whole bool
}

// TextAt follows the bytes of a text, size with its zero byte, as they are before step n.
func TextAt(t *flow.Trace, addr evidence.Addr, size, n int, memory func(evidence.Addr) Memory) Text {
	text := Text{Constant: true, Whole: true}
	var first evidence.Addr
	for i := range size {
		d, from := origin(t, flow.Memory(addr+evidence.Addr(i), 1), n)
		before := Earlier
		if d.Kind == flow.Before && from.Space == transfer.Memory {
			before = memory(from.Addr)
		}
		if d.Kind != flow.Constant && before != OfFile {
			text.Constant = false
		}
		if i == 0 {
			first = from.Addr
		}
		if before != Started && d.Kind != flow.Input || from.Addr != first+evidence.Addr(i) {
			text.Whole = false
		}
	}
	return text
}

// origin is the definition of what a byte was copied from, through as many copies as there are, and the byte there.
func origin(t *flow.Trace, l flow.Location, n int) (flow.Definition, flow.Location) {
	const most = 1000 // copies
	for range most {
		d := t.Define(l, n)
		if d.Kind != flow.Copied {
			return d, d.Part
		}
		l, n = d.From[0], d.At
	}
	return flow.Definition{At: none}, l
}
