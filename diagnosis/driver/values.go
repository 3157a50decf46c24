package driver

import (
	"cmp"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/unwind"
	"diagnose/image/value"
)

// Bounds of the values that are read: arguments for the frames near the top,
// locals for the failing code and its callers.
const (
	argumentFrames = 24
	localFrames    = 4
)

// valueReader reads the variables of the frames of a stopped process.
type valueReader struct {
	*stoppedProcess
	// failed is where the failure is; nil if it has no place.
	failed *evidence.Site
}

// values turns the walked stacks into those of the report, with arguments and locals.
func (a *analysis) values() error {
	v := valueReader{&a.stoppedProcess, a.result.Failure.Site}
	a.result.Stacks = v.readStacks()
	return nil
}

// readStacks returns the stacks of all thread groups, that of the thread under judgement
// first.
func (v valueReader) readStacks() []evidence.ThreadGroup {
	list := make([]evidence.ThreadGroup, len(v.stacks))
	parallel(len(v.stacks), func(i int) {
		g := v.stacks[i]
		list[i] = evidence.ThreadGroup{
			Threads: g.refs(),
			Failing: slices.Contains(g.indexes, v.process.Failing),
			Stack:   v.stackOf(g, v.localBudget(v.thread != nil && i == 0)),
			Waiting: v.waitingText(g),
		}
	})
	return list
}

// localBudget is how many of a stack's top frames have their locals read. Frames of the functions
// that abort do not count.
func (v valueReader) localBudget(judged bool) int {
	switch {
	case judged:
		return localFrames
	case v.separate:
		return 1
	}
	return 0
}

func (v valueReader) stackOf(g *group, locals int) evidence.Stack {
	out := evidence.Stack{Frames: []evidence.Frame{}, Stopped: g.stack.Stopped}
	if g.stack.Truncated && out.Stopped == "" {
		out.Stopped = "the limit of frames was reached"
	}
	out.Stopped = evidence.Say(out.Stopped)
	own := ownFrame(g.stack.Frames, v.failed)
	index := 0
	for i := range g.stack.Frames {
		if i == g.stack.OmittedAt && g.stack.Omitted > 0 {
			out.Omitted, out.OmittedAt = g.stack.Omitted, len(out.Frames)
			index += out.Omitted
		}
		if i >= own && startFrame(&g.stack.Frames[i]) {
			locals = 0 // the functions that started the thread are not the program's own code
		}
		frames := v.frame(g, i, wanted{arguments: i < own+argumentFrames, locals: i >= own && i < own+locals, parts: locals > 0 && i >= own})
		frames = append(frames, tailFrames(&g.stack.Frames[i])...)
		for j := range frames {
			frames[j].Index = index
			index++
		}
		out.Frames = append(out.Frames, frames...)
	}
	return out
}

// ownFrame is the index of the physical frame that holds the failure's site. If the site is in
// another thread, it is the innermost frame of the program's own code.
func ownFrame(frames []unwind.Frame, site *evidence.Site) int {
	if site == nil {
		return 0
	}
	for i := range frames {
		if frames[i].PC() == site.PC {
			return i
		}
	}
	for i := range frames {
		calls := frames[i].Calls
		if len(calls) > 0 && !image.LibraryCode(&calls[len(calls)-1].Site) {
			return i
		}
	}
	return 0
}

// wanted says which variables of a frame are read, and whether the memory that arguments point to
// is read as well.
type wanted struct{ arguments, locals, parts bool }

// frame turns a physical frame into the frames of its inline chain.
func (v valueReader) frame(g *group, i int, want wanted) []evidence.Frame {
	f := &g.stack.Frames[i]
	if f.Kind == evidence.SignalFrame {
		return []evidence.Frame{{Kind: f.Kind, Trust: f.Trust, CFA: f.CFA, Site: evidence.Site{PC: f.PC()}}}
	}
	var out []evidence.Frame
	for _, call := range f.Calls {
		kind := evidence.Physical
		if call.Inlined {
			kind = evidence.Inlined
		}
		out = append(out, evidence.Frame{Kind: kind, Trust: f.Trust, CFA: f.CFA, Site: call.Site})
	}
	if want.arguments || want.locals {
		v.fillVariables(g, i, want, out)
	}
	return out
}

// tailFrames are the functions that left no frame between a physical one and its caller. As in gdb
// each has one frame, of its innermost inlined call.
func tailFrames(f *unwind.Frame) []evidence.Frame {
	var out []evidence.Frame
	for _, tail := range f.TailCalls {
		frame := evidence.Frame{Kind: evidence.TailCall, Trust: evidence.TrustCallSites, Gap: tail.Gap, Site: tail.Calls[0].Site}
		for _, outer := range tail.Calls[1:] {
			frame.InlinedInto = append(frame.InlinedInto, outer.Site)
		}
		out = append(out, frame)
	}
	return out
}

// fillVariables reads the variables of each level of a frame's inline chain. Debug information that
// cannot be read was reported when the frame was named.
func (v valueReader) fillVariables(g *group, i int, want wanted, out []evidence.Frame) {
	f := v.valueFrame(g, i)
	if f == nil {
		return
	}
	info, err := f.Module.Debug()
	if err != nil || info == nil {
		return
	}
	pc := f.Module.LinkAddr(g.stack.Frames[i].LookupPC())
	calls, err := info.CallsAt(pc)
	if err != nil || len(calls) != len(out) {
		return
	}
	for level, call := range calls {
		variables, err := info.VariablesAt(call, pc)
		if err != nil {
			out[level].Locals = []evidence.Variable{{Name: "?", Value: evidence.NoValue(err.Error())}}
			continue
		}
		out[level].Args, out[level].Locals = readVariables(f, variables, want)
	}
}

func readVariables(f *value.Frame, variables []debuginfo.Variable, want wanted) (args, locals []evidence.Variable) {
	for _, v := range innermostFirst(variables) {
		switch {
		case v.Parameter && want.arguments:
			arg := value.Read(f, v, value.Options{Shallow: !want.parts})
			if !want.parts {
				arg.Value.Fields, arg.Value.Elided = nil, 0
			}
			args = append(args, arg)
		case !v.Parameter && want.locals:
			locals = append(locals, value.Read(f, v, value.Options{}))
		}
	}
	return args, locals
}

// innermostFirst orders locals by their block, the innermost first, and keeps
// the order of declaration within one.
func innermostFirst(list []debuginfo.Variable) []debuginfo.Variable {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(x, y debuginfo.Variable) int { return cmp.Compare(y.Depth, x.Depth) })
	return list
}
