package reports

import (
	"fmt"
	"slices"
	"strings"

	"diagnose/evidence"
)

// htmlSource is source text with marked lines.
type htmlSource struct {
	File  string
	Stale bool
	Lines []htmlSourceLine
}

// htmlSourceLine is a line, or, with Gap, the place of lines left out. Mark is
// written before a marked one, which other parts of the page link to by its ID.
type htmlSourceLine struct {
	ID     string
	Number int
	Text   string
	Mark   string
	Gap    bool
}

// failedMark precedes the line that failed, in every format.
const failedMark = "=>"

// htmlSourceOf shows source lines with marks by line number.
func htmlSourceOf(s *evidence.Source, marks map[int]string) *htmlSource {
	x := &htmlSource{File: Clean(s.File), Stale: s.Stale}
	for i, l := range s.Lines {
		if i > 0 && l.Number > s.Lines[i-1].Number+1 {
			x.Lines = append(x.Lines, htmlSourceLine{Gap: true})
		}
		x.Lines = append(x.Lines, htmlSourceLine{Number: l.Number, Text: Clean(expandTabs(l.Text)), Mark: marks[l.Number]})
	}
	return x
}

// sourceContextLines is how many lines are shown on either side of a place.
const sourceContextLines = 3

// sourceAround returns the lines around a place from the case's text; nil if the case does not have
// them.
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

// htmlCode is the part of the program's text that a page names. Every line is shown once, with all
// its marks.
type htmlCode struct {
	sources []evidence.Source
	files   []*codeFile
}

// codeFile are the lines of a file that are shown, with their marks.
type codeFile struct {
	source evidence.Source
	marks  map[int]string
}

// mark adds a place with its mark and the lines around it, and returns the id of
// its line; "" if its text is not known.
func (c *htmlCode) mark(s *evidence.Site, mark string) string {
	if s == nil {
		return ""
	}
	near := sourceAround(*s, c.sources)
	if near == nil {
		return ""
	}
	c.addNear(near, s.Line, mark)
	return c.place(s)
}

// markFailed marks the line that failed. text is the source that the analysis read around it, for a
// case without the sources of its places.
func (c *htmlCode) markFailed(s *evidence.Site, text *evidence.Source) {
	if c.mark(s, failedMark) != "" || text == nil {
		return
	}
	for _, l := range text.Lines {
		if l.Failed {
			c.addNear(text, l.Number, failedMark)
		}
	}
}

func (c *htmlCode) addNear(near *evidence.Source, number int, mark string) {
	f := c.file(near.File)
	if f == nil {
		f = &codeFile{source: evidence.Source{File: near.File, Stale: near.Stale}, marks: map[int]string{}}
		c.files = append(c.files, f)
	}
	f.source.Lines = mergeLines(f.source.Lines, near.Lines)
	if before := f.marks[number]; before != "" && !slices.Contains(strings.Split(before, ","), mark) {
		mark = before + "," + mark
	} else if before != "" {
		return
	}
	f.marks[number] = mark
}

func (c *htmlCode) file(name string) *codeFile {
	for _, f := range c.files {
		if f.source.File == name {
			return f
		}
	}
	return nil
}

// place is the id of a place's line; "" if the line is not marked.
func (c *htmlCode) place(s *evidence.Site) string {
	if s == nil {
		return ""
	}
	for i, f := range c.files {
		if f.source.File == s.File && f.marks[s.Line] != "" {
			return lineID(i, s.Line)
		}
	}
	return ""
}

func lineID(file, line int) string { return fmt.Sprintf("code-%d-%d", file+1, line) }

// section is the source with all marks; none if no text is known.
func (c *htmlCode) section() []*htmlSection {
	if len(c.files) == 0 {
		return nil
	}
	s := &htmlSection{ID: "source", Title: "Source"}
	for i, f := range c.files {
		x := htmlSourceOf(&f.source, f.marks)
		for n := range x.Lines {
			if l := &x.Lines[n]; l.Mark != "" {
				l.ID = lineID(i, l.Number)
			}
		}
		s.Nodes = append(s.Nodes, htmlNode{Source: x})
	}
	return []*htmlSection{s}
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
