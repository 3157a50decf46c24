package driver

import (
	"cmp"
	"path/filepath"
	"slices"

	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
)

const (
	// placeContext is how many lines are kept on either side of a place.
	placeContext = 3
	// maxPlaces bounds the places whose source text is read: a report has a few dozen, and each
	// costs reading a file up to there.
	maxPlaces = 200
)

// sourceFiles are the source files of a process's program.
type sourceFiles struct {
	process *image.Process
	sysroot string
}

// sources are the source files of the program that the process runs.
func (a *analysis) sources() sourceFiles { return sourceFiles{a.process, a.req.Sysroot} }

// sourceContext is how many lines are shown on either side of the failing one.
const sourceContext = 4

// around returns the source text around a place, with the given number of lines on either side; nil
// if it is not found.
func (sf sourceFiles) around(site *evidence.Site, context int) *evidence.Source {
	return failure.SourceLines(*site, context, sf.paths(site))
}

func (sf sourceFiles) paths(site *evidence.Site) failure.SourcePaths {
	paths := failure.SourcePaths{Sysroot: sf.sysroot}
	if m := sf.process.ModuleAt(site.PC); m != nil {
		paths.Object = m.File
		if m.File != "" {
			paths.Dirs = []string{filepath.Dir(m.File)}
		}
	}
	return paths
}

// keepSources adds the text around the places of the case to the case: reports and signatures open
// no files.
func (sf sourceFiles) keepSources(c *evidence.Case) {
	files := map[string]*evidence.Source{}
	var order []string
	for _, site := range sourcePlaces(c) {
		src := sf.around(&site, placeContext)
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
			l.Failed = false // that mark is of one of the places only
			kept.Lines = append(kept.Lines, l)
		}
	}
	byNumber := func(x, y evidence.SourceLine) int { return cmp.Compare(x.Number, y.Number) }
	for _, name := range order {
		s := files[name]
		slices.SortStableFunc(s.Lines, byNumber)
		s.Lines = slices.CompactFunc(s.Lines, func(x, y evidence.SourceLine) bool { return x.Number == y.Number })
		c.Sources = append(c.Sources, *s)
	}
}

// lineText is the text of one line.
func (sf sourceFiles) lineText(site *evidence.Site) (string, bool) {
	src := sf.around(site, 0)
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
		for x := range c.Diagnosis.Told() {
			add(x.Site)
			object(x.Object)
			for j := range x.Story {
				add(x.Story[j].Site)
				if access := x.Story[j].Access; access != nil {
					add(access.Site)
					for k, frames := 1, access.Stack.Frames; k < len(frames) && frames[k-1].Kind == evidence.Inlined; k++ {
						add(&frames[k].Site) // the callers of inlined functions
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
