package expected

import (
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
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
