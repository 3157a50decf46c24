package reports

import (
	"fmt"

	"diagnose/evidence"
)

// htmlSource is source text with marked lines.
type htmlSource struct {
	File  string
	Stale bool
	Lines []htmlSourceLine
}

// htmlSourceLine is a line, or, with Gap, the place of lines left out. Mark is
// what stands before a marked one.
type htmlSourceLine struct {
	Number int
	Text   string
	Mark   string
	Gap    bool
}

// failedMark stands before the line that failed, in every format.
const failedMark = "=>"

// htmlSourceOf shows source lines; marks, if not nil, are by line number and
// stand in place of the mark of the failed line.
func htmlSourceOf(s *evidence.Source, marks map[int]string) *htmlSource {
	if s == nil || len(s.Lines) == 0 {
		return nil
	}
	x := &htmlSource{File: Clean(s.File), Stale: s.Stale}
	for i, l := range s.Lines {
		if i > 0 && l.Number > s.Lines[i-1].Number+1 {
			x.Lines = append(x.Lines, htmlSourceLine{Gap: true})
		}
		mark := marks[l.Number]
		if marks == nil && l.Failed {
			mark = failedMark
		}
		x.Lines = append(x.Lines, htmlSourceLine{Number: l.Number, Text: Clean(expandTabs(l.Text)), Mark: mark})
	}
	return x
}

// sourceContextLines is how many lines are shown on either side of a place.
const sourceContextLines = 3

// sourceAround cuts the lines around a place out of the case's text; nil if it
// is not there.
func sourceAround(s evidence.Site, sources []evidence.Source) *evidence.Source {
	for i := range sources {
		x := &sources[i]
		if s.File == "" || x.File != s.File {
			continue
		}
		near := &evidence.Source{File: x.File, Stale: x.Stale}
		found := false
		for _, l := range x.Lines {
			if l.Number < s.Line-sourceContextLines || l.Number > s.Line+sourceContextLines {
				continue
			}
			l.Failed = l.Number == s.Line
			found = found || l.Failed
			near.Lines = append(near.Lines, l)
		}
		if found {
			return near
		}
	}
	return nil
}

// accessSources are the lines of an interleaving's accesses.
func accessSources(list []evidence.SeenAccess, sources []evidence.Source) []htmlNode {
	sites := make([]*evidence.Site, len(list))
	for i := range list {
		sites[i] = list[i].Site
	}
	return numberedSources(sites, sources)
}

// numberedSources are the lines of places, one source a file, marked with the
// places' numbers from 1; places may be unknown.
func numberedSources(sites []*evidence.Site, sources []evidence.Source) []htmlNode {
	type marked struct {
		source *evidence.Source
		marks  map[int]string
	}
	files := map[string]*marked{}
	var order []string
	for i, s := range sites {
		if s == nil {
			continue
		}
		near := sourceAround(*s, sources)
		if near == nil {
			continue
		}
		m := files[s.File]
		if m == nil {
			m = &marked{source: &evidence.Source{File: near.File, Stale: near.Stale}, marks: map[int]string{}}
			files[s.File] = m
			order = append(order, s.File)
		}
		m.source.Lines = mergeLines(m.source.Lines, near.Lines)
		number := fmt.Sprint(i + 1)
		if before := m.marks[s.Line]; before != "" {
			number = before + "," + number
		}
		m.marks[s.Line] = number
	}
	var nodes []htmlNode
	for _, name := range order {
		nodes = append(nodes, htmlNode{Source: htmlSourceOf(files[name].source, files[name].marks)})
	}
	return nodes
}

// mergeLines merges two ordered lists of lines of one file.
func mergeLines(a, b []evidence.SourceLine) []evidence.SourceLine {
	var out []evidence.SourceLine
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Number < b[0].Number:
			out, a = append(out, a[0]), a[1:]
		case len(a) == 0 || b[0].Number < a[0].Number:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, a[0]), a[1:], b[1:]
		}
	}
	return out
}
