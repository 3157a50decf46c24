package expected

import (
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/value"
	"diagnose/staticscan"
)

// Input is a stopped process with its judged failure.
type Input struct {
	Process *image.Process
	// Thread failed, with Failure. Frames are its frames from the failure outward.
	Thread  *image.Thread
	Failure *evidence.Failure
	Frames  []unwind.Frame
	// Blame is what the static scan found of the bad value; nil if there is none.
	Blame *staticscan.Blame
	// Source is the text around a place, with that many lines on either side; nil: it is not there.
	Source func(site *evidence.Site, context int) *evidence.Source
}

// usable reports whether there is anything to compare.
func (in *Input) usable() bool {
	return in.Process != nil && in.Thread != nil && in.Failure != nil && len(in.Frames) > 0
}

// maxCallers bounds the frames that are searched for the arguments which a frame has lost.
const maxCallers = 3

// valueFrame is the context in which the variables of a frame are read; nil for code outside of every object.
func (in *Input) valueFrame(i int) *value.Frame {
	var first *value.Frame
	next := &first
	for j := i; j < min(i+1+maxCallers, len(in.Frames)); j++ {
		f := &in.Frames[j]
		m := in.Process.ModuleAt(f.PC())
		if m == nil {
			break
		}
		frame := &value.Frame{Process: in.Process, Thread: in.Thread, Module: m, Registers: f.Registers, CFA: f.CFA, Lookup: f.Lookup}
		*next, next = frame, &frame.Caller
	}
	return first
}

// siteFrame is the frame with the failure's place and the level of its inline chain; -1: none has it.
func (in *Input) siteFrame() (frame, level int) {
	site := in.Failure.Site
	if site == nil {
		return -1, 0
	}
	for i := range in.Frames {
		f := &in.Frames[i]
		if f.PC() != site.PC {
			continue
		}
		level := slices.IndexFunc(f.Calls, func(c image.SymbolizedCall) bool { return c.Site.Function == site.Function && c.Site.Line == site.Line })
		return i, max(level, 0)
	}
	return -1, 0
}

// context is how many lines before and after a place an expression may extend to.
const context = 4

// code are the tokens around a place, and the index of the one that the line table names; -1: none begins there. A source
// that is newer than the program tells nothing.
func (in *Input) code(site *evidence.Site) ([]token, int) {
	if in.Source == nil || site == nil {
		return nil, -1
	}
	src := in.Source(site, context)
	if src == nil || src.Stale {
		return nil, -1
	}
	list := tokens(src.Lines)
	return list, at(list, site.Line, site.Column)
}
