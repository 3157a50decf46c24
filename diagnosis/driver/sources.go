package driver

import (
	"cmp"
	"slices"

	"diagnose/diagnosis/failure"
	"diagnose/evidence"
)

const (
	// placeContext is how many lines are kept on either side of a place.
	placeContext = 3
	// maxPlaces bounds the places whose source text is read: a report has a few dozen, and each
	// costs reading a file up to there.
	maxPlaces = 200
)

// readSources keeps the text around the places that the case is told with, for
// reports, and for signatures, which open no files.
func (a *analysis) readSources() {
	files := map[string]*evidence.Source{}
	var order []string
	for _, site := range sourcePlaces(a.result) {
		src := failure.SourceLines(site, placeContext, a.sourcePaths(&site))
		if src == nil {
			continue
		}
		kept := files[site.File]
		if kept == nil {
			kept = &evidence.Source{File: site.File}
			files[site.File] = kept
			order = append(order, site.File)
		}
		kept.Stale = kept.Stale || src.Stale
		for _, l := range src.Lines {
			l.Failed = false // of one of the places only
			kept.Lines = append(kept.Lines, l)
		}
	}
	byNumber := func(x, y evidence.SourceLine) int { return cmp.Compare(x.Number, y.Number) }
	for _, name := range order {
		s := files[name]
		slices.SortStableFunc(s.Lines, byNumber)
		s.Lines = slices.CompactFunc(s.Lines, func(x, y evidence.SourceLine) bool { return x.Number == y.Number })
		a.result.Sources = append(a.result.Sources, *s)
	}
}

// sourceLine is the text of one line.
func (a *analysis) sourceLine(site *evidence.Site) (string, bool) {
	src := failure.SourceLines(*site, 0, a.sourcePaths(site))
	if src == nil {
		return "", false
	}
	return src.Lines[0].Text, true
}

// sourcePlaces are the lines that the failure, its causes and its findings
// name, in this order and each once.
func sourcePlaces(c *evidence.Case) []evidence.Site {
	type place struct {
		file string
		line int
	}
	var list []evidence.Site
	seen := map[place]bool{}
	add := func(s *evidence.Site) {
		if s != nil && s.File != "" && s.Line > 0 && len(list) < maxPlaces && !seen[place{s.File, s.Line}] {
			seen[place{s.File, s.Line}] = true
			list = append(list, *s)
		}
	}
	object := func(o *evidence.HeapObject) {
		for _, call := range objectCalls(o) {
			add(call.Site)
		}
	}
	add(c.Failure.Site)
	if c.Diagnosis != nil {
		for i := range c.Diagnosis.Causes {
			x := &c.Diagnosis.Causes[i]
			add(x.Site)
			object(x.Object)
			for j := range x.Story {
				add(x.Story[j].Site)
				if access := x.Story[j].Access; access != nil {
					add(access.Site)
					for k, frames := 1, access.Stack.Frames; k < len(frames) && frames[k-1].Kind == evidence.Inlined; k++ {
						add(&frames[k].Site) // who called what was inlined
					}
				}
			}
			if x.Interleaving == nil {
				continue
			}
			for _, accesses := range [][]evidence.SeenAccess{x.Interleaving.Failing, x.Interleaving.Passing} {
				for j := range accesses {
					add(accesses[j].Site)
				}
			}
			for j := range x.Interleaving.Failing {
				access := &x.Interleaving.Failing[j]
				object(access.Object)
				add(access.Caller())
			}
		}
	}
	if c.Diagnosis != nil && c.Diagnosis.Schedule != nil {
		for i := range c.Diagnosis.Schedule.Preemptions {
			add(c.Diagnosis.Schedule.Preemptions[i].Site)
			add(c.Diagnosis.Schedule.Preemptions[i].LastSite)
		}
	}
	for i := range c.Findings {
		f := &c.Findings[i]
		add(f.Site)
		object(f.Object)
		object(f.Beyond)
		if f.Call != nil {
			add(f.Call.Site)
		}
		for j := range f.Wait {
			add(f.Wait[j].Site)
		}
	}
	return list
}

func objectCalls(o *evidence.HeapObject) []*evidence.HeapCall {
	var list []*evidence.HeapCall
	if o != nil && o.Allocated != nil {
		list = append(list, o.Allocated)
	}
	if o != nil && o.Freed != nil {
		list = append(list, o.Freed)
	}
	return list
}
