package provenance

import (
	"strings"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
)

// converted continues from the result of a function that converts text to a number: at the number of which the program itself made the
// text, or at the call that read the text.
func (f *follower) converted(entered int) {
	if name := strings.TrimLeft(f.way.Call, "_"); !strings.HasPrefix(name, "strto") && !strings.HasPrefix(name, "ato") || f.depth == mostDepth {
		return
	}
	text := flow.Memory(evidence.Addr(f.trace.Register(entered, x86.RDI)), 1)
	inner := f.inner()
	if number, at, ok := f.printed(text, entered); ok {
		inner.follow(number, at)
	} else if inner.follow(text, entered); inner.way.End != Input {
		return
	}
	f.continueOn(inner.way)
}

// formats are the functions of the C library that write numbers as text into memory, with the place of the first argument after the
// format (System V ABI, 3.2.3).
var formats = map[string]int{"sprintf": 2, "snprintf": 3, "sprintf_chk": 4, "snprintf_chk": 5}

// printed is the argument of a call that wrote the text which a function, entered at step n, converts to the same number; ok is false if
// there is none, or several.
func (f *follower) printed(text flow.Location, n int) (number flow.Location, at int, ok bool) {
	result, known := f.result(n)
	if !known {
		return number, 0, false
	}
	const mostCopies = 64
	for range mostCopies {
		d := f.trace.Define(text, n)
		if d.At < 0 || f.trace.Step(d.At).Library {
			return number, 0, false
		}
		if f.program.Foreign(f.trace.Step(d.At).PC) {
			if entered := f.after(max(f.ownCall(d.At), 0)); entered >= 0 {
				name := strings.TrimPrefix(strings.TrimLeft(f.program.Function(f.trace.Step(entered).PC), "_"), "IO_")
				if first, is := formats[name]; is {
					number, ok = f.argument(entered, first, result)
					return number, entered, ok
				}
			}
		}
		if d.Kind != flow.Copied {
			return number, 0, false
		}
		text, n = d.From[0], d.At
	}
	return number, 0, false
}

// result is what the function returned that was entered at step n.
func (f *follower) result(n int) (uint64, bool) {
	sp := f.trace.Register(n, x86.RSP)
	for at := f.trace.Next(n); at >= 0 && at-n < mostSteps; at = f.trace.Next(at) {
		if f.trace.Register(at, x86.RSP) > sp {
			return f.trace.Register(at, x86.RAX), true
		}
	}
	return 0, false
}

// argument is the only one, from argument first on, of a function that was entered at step n which has a value, in 8 bytes or in 4.
func (f *follower) argument(n, first int, value uint64) (found flow.Location, ok bool) {
	const most = 6 // arguments that are looked at
	thread, sp := f.trace.Step(n).Thread, evidence.Addr(f.trace.Register(n, x86.RSP))
	registers := []x86.Reg{x86.RDI, x86.RSI, x86.RDX, x86.RCX, x86.R8, x86.R9}
	for i := first; i < first+most; i++ {
		l := flow.Memory(sp+8*evidence.Addr(i-len(registers)+1), 8) // past the return address
		if i < len(registers) {
			l = flow.Register(thread, registers[i], 8)
		}
		v, known := f.value(l, n)
		if !known || v != value && uint32(v) != uint32(value) {
			continue
		}
		if ok {
			return found, false
		}
		if l.Size = 4; v == value {
			l.Size = 8
		}
		found, ok = l, true
	}
	return found, ok
}
