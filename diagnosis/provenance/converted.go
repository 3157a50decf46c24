package provenance

import (
	"strings"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
)

// converted continues from the result of a function that converts text to a number: at the number of which the program itself made the
// text, or at the call that read the text. Else the way is not decided: who made the text matters.
func (f *follower) converted(entered int) {
	if name := strings.TrimLeft(f.way.Call, "_"); !strings.HasPrefix(name, "strto") && !strings.HasPrefix(name, "ato") || f.depth == mostDepth {
		return
	}
	text := flow.Memory(evidence.Addr(f.trace.Register(entered, x86.RDI)), 1)
	inner := f.inner()
	if number, at, ok := f.printed(text, entered); ok {
		inner.follow(number, at)
	} else if inner.follow(text, entered); inner.way.End != Input {
		if !inner.way.FromMemory() || !f.program.OfStart(inner.way.From.Addr) {
			f.way.End = Undecided
		}
		return
	}
	f.continueOn(inner.way)
}

// formats are the functions of the C library that write numbers as text into memory, with the place of the first argument after the
// format (System V ABI, 3.2.3). Those whose name begins with a v have a list of the further arguments there.
var formats = map[string]int{"sprintf": 2, "snprintf": 3, "asprintf": 2, "sprintf_chk": 4, "snprintf_chk": 5, "asprintf_chk": 3,
	"vsprintf": 2, "vsnprintf": 3, "vasprintf": 2, "vsprintf_chk": 4, "vsnprintf_chk": 5, "vasprintf_chk": 3}

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
					arguments := f.argumentsFrom(entered, first)
					if name[0] == 'v' {
						arguments = f.listed(entered, first)
					}
					number, ok = f.only(arguments, entered, result)
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

// mostArguments bounds how many arguments are looked at.
const mostArguments = 6

// argumentRegisters have the first arguments of a function (System V ABI, 3.2.3).
var argumentRegisters = []x86.Reg{x86.RDI, x86.RSI, x86.RDX, x86.RCX, x86.R8, x86.R9}

// argumentsFrom are the arguments, from one on, of a function that was entered at step n.
func (f *follower) argumentsFrom(n, first int) (list []flow.Location) {
	thread, sp := f.trace.Step(n).Thread, evidence.Addr(f.trace.Register(n, x86.RSP))
	for i := first; i < first+mostArguments; i++ {
		if i < len(argumentRegisters) {
			list = append(list, flow.Register(thread, argumentRegisters[i], 8))
		} else {
			list = append(list, flow.Memory(sp+8*evidence.Addr(i-len(argumentRegisters)+1), 8)) // past the return address
		}
	}
	return list
}

// listed are the arguments in the va_list that is an argument of a function that was entered at step n (System V ABI, 3.5.7).
func (f *follower) listed(n, argument int) (list []flow.Location) {
	at, known := f.value(flow.Register(f.trace.Step(n).Thread, argumentRegisters[argument], 8), n)
	if !known {
		return nil
	}
	va := evidence.Addr(at)
	offset, hasOffset := f.value(flow.Memory(va, 4), n)
	overflow, hasOverflow := f.value(flow.Memory(va+8, 8), n)
	saved, hasSaved := f.value(flow.Memory(va+16, 8), n)
	if !hasOffset || !hasOverflow || !hasSaved {
		return nil
	}
	end := uint64(8 * len(argumentRegisters))
	for next := uint32(offset); uint64(next) < end && len(list) < mostArguments; next += 8 {
		list = append(list, flow.Memory(evidence.Addr(saved+uint64(next)), 8))
	}
	for i := uint64(0); len(list) < mostArguments; i++ {
		list = append(list, flow.Memory(evidence.Addr(overflow+8*i), 8))
	}
	return list
}

// only is the only one of some arguments that had a value before step n, in 8 bytes or in 4.
func (f *follower) only(arguments []flow.Location, n int, value uint64) (found flow.Location, ok bool) {
	for _, l := range arguments {
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
