package provenance

import (
	"strings"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
)

// conversion is a call of a function that converts text to a number: the step at which it was entered.
type conversion struct {
	*follower
	entered int
}

// converted continues from the result of a function that converts text to a number: at the number of which the program itself made the
// text, or at the call that read the text. Else the way is not decided: who made the text matters.
func (f *follower) converted(entered int) {
	if name := strings.TrimLeft(f.way.Call, "_"); !strings.HasPrefix(name, "strto") && !strings.HasPrefix(name, "ato") || f.depth == mostDepth {
		return
	}
	c := conversion{f, entered}
	text := flow.Memory(evidence.Addr(f.trace.Register(entered, x86.RDI)), 1)
	inner := f.inner()
	if number, at, ok := c.printed(text); ok {
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

// printed is the argument of a call that wrote the text which is converted to the same number, before the step at; ok is false if
// there is none, or several.
func (c conversion) printed(text flow.Location) (number flow.Location, at int, ok bool) {
	result, known := c.result()
	if !known {
		return number, 0, false
	}
	const mostCopies = 64
	n := c.entered
	for range mostCopies {
		d := c.trace.Define(text, n)
		if d.At < 0 || c.trace.Step(d.At).Library {
			return number, 0, false
		}
		if c.program.Foreign(c.trace.Step(d.At).PC) {
			if entered := c.after(max(c.ownCall(d.At), 0)); entered >= 0 {
				name := strings.TrimPrefix(strings.TrimLeft(c.program.Function(c.trace.Step(entered).PC), "_"), "IO_")
				if first, is := formats[name]; is {
					p := printing{c.follower, entered}
					arguments := p.arguments(first)
					if name[0] == 'v' {
						arguments = p.listed(first)
					}
					number, ok = p.only(arguments, result)
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

// result is what the function returned.
func (c conversion) result() (uint64, bool) {
	sp := c.trace.Register(c.entered, x86.RSP)
	for at := c.trace.Next(c.entered); at >= 0 && at-c.entered < mostSteps; at = c.trace.Next(at) {
		if c.trace.Register(at, x86.RSP) > sp {
			return c.trace.Register(at, x86.RAX), true
		}
	}
	return 0, false
}

// printing is a call of one of formats: the step at which it was entered.
type printing struct {
	*follower
	entered int
}

// mostArguments bounds how many arguments are looked at.
const mostArguments = 6

// arguments are those from one on.
func (p printing) arguments(first int) (list []flow.Location) {
	thread, sp := p.trace.Step(p.entered).Thread, evidence.Addr(p.trace.Register(p.entered, x86.RSP))
	for i := first; i < first+mostArguments; i++ {
		if i < len(x86.ArgumentRegisters) {
			list = append(list, flow.Register(thread, x86.ArgumentRegisters[i], 8))
		} else {
			list = append(list, flow.Memory(sp+8*evidence.Addr(i-len(x86.ArgumentRegisters)+1), 8)) // past the return address
		}
	}
	return list
}

// listed are the arguments in the va_list that is an argument (System V ABI, 3.5.7).
func (p printing) listed(argument int) (list []flow.Location) {
	n := p.entered
	at, known := p.value(flow.Register(p.trace.Step(n).Thread, x86.ArgumentRegisters[argument], 8), n)
	if !known {
		return nil
	}
	va := evidence.Addr(at)
	offset, hasOffset := p.value(flow.Memory(va, 4), n)
	overflow, hasOverflow := p.value(flow.Memory(va+8, 8), n)
	saved, hasSaved := p.value(flow.Memory(va+16, 8), n)
	if !hasOffset || !hasOverflow || !hasSaved {
		return nil
	}
	end := uint64(8 * len(x86.ArgumentRegisters))
	for next := uint32(offset); uint64(next) < end && len(list) < mostArguments; next += 8 {
		list = append(list, flow.Memory(evidence.Addr(saved+uint64(next)), 8))
	}
	for i := uint64(0); len(list) < mostArguments; i++ {
		list = append(list, flow.Memory(evidence.Addr(overflow+8*i), 8))
	}
	return list
}

// only is the only one of some arguments that has a value, in 8 bytes or in 4.
func (p printing) only(arguments []flow.Location, value uint64) (found flow.Location, ok bool) {
	for _, l := range arguments {
		v, known := p.value(l, p.entered)
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
