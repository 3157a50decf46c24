package stackjudge

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86/heights"
	"diagnose/internal/wording"
)

// Input is a stopped process and its judged failure.
type Input struct {
	Process *image.Process
	// Thread failed, with Failure. Frames are its frames from the failure outward.
	Thread  *image.Thread
	Failure *evidence.Failure
	Frames  []unwind.Frame
	// Guard is the address of a stack guard that was overwritten; 0: there is none.
	Guard evidence.Addr
	// Code reads the function of a module that covers an address, the range with its entry first; nil: its extent is
	// not known.
	Code func(m *image.Module, pc evidence.Addr) []heights.Code
	// StackName names an address on a stack by its variable; empty: it is not known.
	StackName func(evidence.Addr) string
}

// judge is the state of one judgement.
type judge struct {
	Input
	functions map[evidence.Addr]*function
	// left is how many bytes may still be searched.
	left uint64
}

// shown bounds the bytes of a run that a report has.
const shown = 96

// Overrun returns the array that was overrun; nil: none fits, or the failure is no smashed stack.
func Overrun(in Input) *evidence.StackOverrun {
	if in.Process == nil || in.Thread == nil || in.Failure == nil || len(in.Frames) == 0 {
		return nil
	}
	j := &judge{Input: in, functions: map[evidence.Addr]*function{}, left: mostSearched}
	list := j.activations()
	var fits []*overrun
	for i := range list {
		if o := j.overrunOf(&list[i]); o != nil {
			fits = append(fits, o)
		}
	}
	o := onlyOne(fits)
	if o == nil {
		return nil
	}
	return j.describe(o)
}

// onlyOne is the overrun of the one function that fits; nil: there is none, or several fit. A run that begins where the
// array begins counts more than others.
func onlyOne(fits []*overrun) *overrun {
	var exact []*overrun
	for _, o := range fits {
		if o.run.kind != evidence.RunNumbers && o.run.start == o.arrays[0].addr {
			exact = append(exact, o)
		}
	}
	if len(exact) > 0 {
		fits = exact
	}
	if len(fits) == 0 {
		return nil
	}
	if slices.ContainsFunc(fits, func(o *overrun) bool { return o.activation.function != fits[0].activation.function }) {
		return nil
	}
	return fits[0]
}

// overrun is an activation with the arrays that fit, the lowest first, and their run.
type overrun struct {
	activation *activation
	window     *window
	arrays     []array
	run        run
}

// overrunOf finds the arrays of an activation whose contents continue over its word; nil: there are none.
func (j *judge) overrunOf(a *activation) *overrun {
	arrays := j.arraysOf(a)
	if len(arrays) == 0 {
		return nil
	}
	mem := j.windowOf(a, arrays)
	if mem == nil {
		return nil
	}
	o := &overrun{activation: a, window: mem}
	for _, x := range arrays {
		r, ok := mem.runOf(&x, &a.word)
		if !ok && a.word.kind != evidence.WordSavedRegister {
			r, ok = j.copyOf(mem, &x, &a.word)
		}
		if !ok {
			continue
		}
		if len(o.arrays) > 0 && o.run.kind != r.kind {
			continue
		}
		if len(o.arrays) == 0 {
			o.run = r
		}
		o.arrays = append(o.arrays, x)
	}
	if len(o.arrays) == 0 {
		return nil
	}
	return o
}

// describe makes the facts of an overrun.
func (j *judge) describe(o *overrun) *evidence.StackOverrun {
	a := o.activation
	out := &evidence.StackOverrun{Function: j.nameOf(a.function), Word: a.word.kind, WordAddr: a.word.addr,
		Run: o.run.kind, Start: o.run.start, End: o.run.end, Proof: evidence.Inferred}
	if a.word.kind == evidence.WordSavedRegister {
		out.Register = a.word.register.String()
	}
	from := max(o.run.start, o.arrays[0].addr)
	out.Start = from
	out.Same = j.sameBytes(o)
	out.End = o.run.end
	for i := range o.arrays {
		x := &o.arrays[i]
		out.Arrays = append(out.Arrays, evidence.FrameArray{Name: x.name, Type: x.typ, Function: x.function, File: x.file, Line: x.line,
			Addr: x.addr, Size: x.size, Following: uint64(o.run.end - x.end())})
	}
	data := make([]byte, min(uint64(o.run.end-from), shown))
	n, _ := j.Process.ReadMemory(from, data)
	out.Contents = evidence.Bytes{Hex: hex.EncodeToString(data[:n]), Text: wording.Printable(data[:n])}
	out.Writers = j.writers(a, o.arrays)
	return out
}

// Summary is one sentence about an overrun, without a final stop.
func Summary(o *evidence.StackOverrun) string {
	var names []string
	for i := range o.Arrays {
		a := &o.Arrays[i]
		name := a.Name
		if a.Function != o.Function {
			name = evidence.ShortName(a.Function) + "'s " + name
		}
		names = append(names, fmt.Sprintf("%s (%s)", name, a.Type))
	}
	what := "the array " + names[0]
	if n := len(names); n > 1 {
		what = "an array, " + strings.Join(names[:n-1], ", ") + " or " + names[n-1] + ","
	}
	over := map[evidence.FrameWord]string{evidence.WordReturnAddress: "the return address", evidence.WordGuard: "the stack guard",
		evidence.WordSavedRegister: "the saved register " + o.Register}[o.Word]
	return fmt.Sprintf("the contents of %s continue past its end over %s of %s", what, over, evidence.ShortName(o.Function))
}

// nameOf is the name of a function.
func (j *judge) nameOf(f *function) string {
	calls := j.Process.Symbolize(f.entry, image.AtInstruction)
	return calls[len(calls)-1].Site.Function
}

// arrayAt reports whether an address is in one of the arrays.
func arrayAt(list []array, addr evidence.Addr) bool {
	return slices.ContainsFunc(list, func(x array) bool { return addr >= x.addr && addr < x.end() })
}
