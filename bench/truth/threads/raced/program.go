package raced

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"diagnose/bench/truth/score"
	"diagnose/evidence"
)

// Lead is the outcome of a report that names no cause, and the bug as a lead.
const Lead score.Outcome = "unknown with a right lead"

// Program is a program with its right answers.
type Program struct {
	// Path is the path of its source.
	Path string
	bugs []int    // lines, from 1
	not  []string // variables
}

// Name is the name of its source without the extension.
func (p *Program) Name() string {
	return strings.TrimSuffix(filepath.Base(p.Path), filepath.Ext(p.Path))
}

// CPlusPlus reports whether it is in C++.
func (p *Program) CPlusPlus() bool { return filepath.Ext(p.Path) == ".cc" }

// ReadAll reads the programs of a directory, in the order of their names.
func ReadAll(dir string) (list []*Program, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("raced: %w", err)
	}
	for _, e := range entries {
		p, err := read(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func read(path string) (*Program, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("raced: %w", err)
	}
	p := &Program{Path: path}
	top := true
	for i, line := range strings.Split(string(text), "\n") {
		top = top && strings.HasPrefix(line, "//")
		if names, ok := strings.CutPrefix(line, "// NOT:"); ok && top {
			p.not = append(p.not, strings.Fields(names)...)
		}
		if strings.HasSuffix(line, "// BUG") {
			p.bugs = append(p.bugs, i+1)
		}
	}
	if len(p.bugs) == 0 {
		return nil, fmt.Errorf("raced: %s: no line ends with // BUG", path)
	}
	return p, nil
}

// Judge compares a report with the right answers.
func (p *Program) Judge(c *evidence.Case) score.Score {
	d := c.Diagnosis
	switch {
	case d == nil:
		return score.Score{Outcome: score.Unknown}
	case len(d.Causes) > 0:
		return p.judgeCause(&d.Causes[0])
	case slices.ContainsFunc(d.Leads, func(lead evidence.Cause) bool { return p.right(&lead) }):
		return score.Score{Outcome: Lead}
	}
	return score.Score{Outcome: score.Unknown}
}

func (p *Program) judgeCause(first *evidence.Cause) score.Score {
	s := score.Score{Outcome: score.Wrong, Proved: first.Proof == evidence.Proved}
	switch {
	case p.right(first):
		s.Outcome = score.Right
	case s.Proved:
		s.Outcome = score.WrongProved
	}
	return s
}

// right reports whether a cause or a lead names the bug: by its place, or by an access of its order in either run.
func (p *Program) right(c *evidence.Cause) bool {
	if p.innocent(c.Variable) {
		return false
	}
	i := c.Interleaving
	if i == nil {
		return p.marked(c.Site)
	}
	if slices.ContainsFunc(i.Variables, p.innocent) {
		return false
	}
	there := func(a evidence.SeenAccess) bool { return p.marked(a.Site) }
	return p.marked(c.Site) || slices.ContainsFunc(i.Failing, there) || slices.ContainsFunc(i.Passing, there)
}

func (p *Program) marked(s *evidence.Site) bool {
	return s != nil && filepath.Base(s.File) == filepath.Base(p.Path) && slices.Contains(p.bugs, s.Line)
}

// innocent reports whether a variable, or the last member that an expression names, has no part in the bug.
func (p *Program) innocent(variable string) bool {
	return slices.Contains(p.not, variable[strings.LastIndexAny(variable, ".>:*")+1:])
}
