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

// values turns the walked stacks into those of the report, with arguments and
// locals.
func (a *analysis) values() error {
	list := make([]evidence.ThreadGroup, len(a.stacks))
	parallel(len(a.stacks), func(i int) {
		g := a.stacks[i]
		list[i] = evidence.ThreadGroup{
			Threads: g.refs(),
			Failing: slices.Contains(g.indexes, a.process.Failing),
			Stack:   a.stackOf(g, a.localBudget(a.thread != nil && i == 0)),
			Waiting: a.waitingText(g),
		}
	})
	a.result.Stacks = list
	return nil
}

// localBudget is how many of a stack's top frames have their locals read.
// Frames of the machinery of an abort do not count.
func (a *analysis) localBudget(judged bool) int {
	switch {
	case judged:
		return localFrames
	case a.req.AllThreads:
		return 1
	}
	return 0
}

func (a *analysis) stackOf(g *group, locals int) evidence.Stack {
	out := evidence.Stack{Frames: []evidence.Frame{}, Stopped: g.stack.Stopped}
	if g.stack.Truncated && out.Stopped == "" {
		out.Stopped = "the limit of frames was reached"
	}
	own := ownFrame(g.stack.Frames, a.result.Failure.Site)
	index := 0
	for i := range g.stack.Frames {
		if i == g.stack.OmittedAt && g.stack.Omitted > 0 {
			out.Omitted, out.OmittedAt = g.stack.Omitted, len(out.Frames)
			index += out.Omitted
		}
		if i >= own && startFrame(&g.stack.Frames[i]) {
			locals = 0 // what started the thread is not the program's own code
		}
		frames := a.frame(g, i, wanted{arguments: i < own+argumentFrames, locals: i >= own && i < own+locals, parts: locals > 0 && i >= own})
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
func (a *analysis) frame(g *group, i int, want wanted) []evidence.Frame {
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
		a.fillVariables(g, i, want, out)
	}
	return out
}

// fillVariables reads the variables of each level of a frame's inline chain. Debug information that
// cannot be read was reported when the frame was named.
func (a *analysis) fillVariables(g *group, i int, want wanted, out []evidence.Frame) {
	f := a.valueFrame(g, i)
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
			out[level].Locals = []evidence.Variable{{Name: "?", Value: evidence.Value{Unavailable: err.Error()}}}
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

// callers is how many callers of a frame are asked for the arguments that the
// frame itself has lost.
const callers = 3

// valueFrame is the context in which a frame's variables are read; nil for
// code outside every object.
func (a *analysis) valueFrame(g *group, i int) *value.Frame {
	var first *value.Frame
	link := &first
	for j := i; j < min(i+1+callers, len(g.stack.Frames)); j++ {
		f := &g.stack.Frames[j]
		module := a.process.ModuleAt(f.PC())
		if module == nil {
			break
		}
		frame := &value.Frame{Process: a.process, Thread: g.threads[0], Module: module,
			Registers: f.Registers, CFA: f.CFA, Lookup: f.Lookup}
		*link, link = frame, &frame.Caller
	}
	return first
}
