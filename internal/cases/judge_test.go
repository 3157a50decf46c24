package cases

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"diagnose/evidence"
)

// result is what a report is worth, from the best to the worst.
type result int

const (
	right result = iota + 1
	weak         // the cause is right, and its proof level lower than it should be
	unknown
	wrong
	wrongProved
)

var resultNames = map[result]string{right: "right", weak: "weak", unknown: "unknown", wrong: "wrong", wrongProved: "wrong and proved"}

func (r result) String() string { return resultNames[r] }

// UnmarshalText reads a result's name.
func (r *result) UnmarshalText(text []byte) error {
	for value, name := range resultNames {
		if name == string(text) {
			*r = value
			return nil
		}
	}
	return fmt.Errorf("no result %q", text)
}

// judgement is a result, and why it is not right.
type judgement struct {
	result result
	why    []string
}

func (j *judgement) worsen(r result, format string, args ...any) {
	j.result = max(j.result, r)
	j.why = append(j.why, fmt.Sprintf(format, args...))
}

// document is the part of the JSON report that is judged.
type document struct {
	Case *evidence.Case `json:"case"`
}

func decode(text []byte) (*evidence.Case, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	if d.Case == nil {
		return nil, fmt.Errorf("the report has no case")
	}
	return d.Case, nil
}

// judge compares a report with its entry.
func (e *entry) judge(c *evidence.Case) judgement {
	j := judgement{result: right}
	e.judgeFailure(c, &j)
	if d := c.Diagnosis; len(e.Want.Cause) > 0 {
		switch {
		case d == nil || len(d.Causes) == 0:
			j.worsen(unknown, "no cause is named (%s)", limits(c))
		default:
			e.judgeCause(&d.Causes[0], &j)
		}
	}
	return j
}

// limits are the codes of what limited the analysis.
func limits(c *evidence.Case) string {
	list := c.Limits
	if c.Diagnosis != nil {
		list = slices.Concat(list, c.Diagnosis.Coverage.Limits)
	}
	var codes []string
	for i := range list {
		codes = append(codes, fmt.Sprintf("%s %s", list[i].Code, list[i].Text))
	}
	return strings.Join(codes, "; ")
}

func (e *entry) judgeFailure(c *evidence.Case, j *judgement) {
	w := &e.Want
	if len(w.Failure) > 0 && !slices.Contains(w.Failure, c.Failure.Kind) {
		j.worsen(unknown, "the failure is %s, not %v", c.Failure.Kind, w.Failure)
	}
	if len(w.FailureAt) > 0 && !e.at(c.Failure.Site, w.FailureAt) {
		j.worsen(unknown, "the failure is at %s", place(c.Failure.Site))
	}
	if d := c.Diagnosis; d != nil && slices.ContainsFunc(d.Excluded, func(f evidence.Fact) bool { return slices.Contains(w.NoFact, f.Name) }) {
		j.worsen(wrong, "the report rules out what the recordings do not tell")
	}
	if len(w.Finding) > 0 && !slices.ContainsFunc(c.Findings, func(f evidence.Finding) bool { return slices.Contains(w.Finding, f.Kind) }) {
		j.worsen(unknown, "no finding is %v", w.Finding)
	}
	if w.Owner && !slices.ContainsFunc(c.Findings, ownerKnown) {
		j.worsen(unknown, "no finding names the owner of the lock")
	}
	if w.Message && (c.Ending == nil || len(c.Ending.Messages) == 0 && len(c.Ending.Calls) == 0 && c.Ending.Panic == nil) {
		j.worsen(unknown, "no message and no failed call is told")
	}
	if w.Process != "" && filepath.Base(c.Program.Exe) != w.Process {
		j.worsen(unknown, "the program is %s, not %s", c.Program.Exe, w.Process)
	}
	if missing := missingFrame(c, w.Frames); missing != "" {
		j.worsen(unknown, "the failing stack lacks %s", missing)
	}
}

func ownerKnown(f evidence.Finding) bool {
	return slices.ContainsFunc(f.Wait, func(w evidence.WaitEdge) bool { return w.Owner != nil })
}

// missingFrame is the first of the functions that the failing stack does not have in this order.
func missingFrame(c *evidence.Case, functions []string) string {
	for i := range c.Stacks {
		if !c.Stacks[i].Failing {
			continue
		}
		for _, f := range c.Stacks[i].Stack.Frames {
			if len(functions) > 0 && evidence.ShortName(f.Site.Function) == functions[0] {
				functions = functions[1:]
			}
		}
	}
	if len(functions) > 0 {
		return functions[0]
	}
	return ""
}

var levels = []evidence.Proof{evidence.Inferred, evidence.FromCore, evidence.Replayed, evidence.Proved}

func (e *entry) judgeCause(c *evidence.Cause, j *judgement) {
	w, bad := &e.Want, wrong
	if c.Proof == evidence.Proved {
		bad = wrongProved
	}
	if !slices.Contains(w.Cause, c.Kind) {
		j.worsen(bad, "the cause is %s, not %v", c.Kind, w.Cause)
	}
	if len(w.At) > 0 && !e.at(c.Site, w.At) {
		j.worsen(bad, "the cause is at %s", place(c.Site))
	}
	variables, pattern := []string{c.Variable}, evidence.PatternKind("")
	if i := c.Interleaving; i != nil {
		variables, pattern = i.Variables, i.Pattern
	}
	if len(w.Variable) > 0 && !slices.ContainsFunc(variables, func(name string) bool {
		return slices.ContainsFunc(w.Variable, func(part string) bool { return strings.Contains(name, part) })
	}) {
		j.worsen(bad, "the variable is %v, not %v", variables, w.Variable)
	}
	if len(w.Pattern) > 0 && !slices.Contains(w.Pattern, pattern) {
		j.worsen(bad, "the pattern is %q, not %v", pattern, w.Pattern)
	}
	for _, via := range w.Via {
		if !e.tells(c, via) {
			j.worsen(weak, "no step is at %q", via)
		}
	}
	level := slices.Index(levels, c.Proof)
	if w.Least != "" && level < slices.Index(levels, w.Least) {
		j.worsen(weak, "it is %s, not %s", c.Proof, w.Least)
	}
	if w.Most != "" && level > slices.Index(levels, w.Most) {
		j.worsen(bad, "it is %s, which nothing can show: at most %s", c.Proof, w.Most)
	}
}

// tells reports whether a cause or a step of its story is at a place.
func (e *entry) tells(c *evidence.Cause, via string) bool {
	sites := []*evidence.Site{c.Site}
	for i := range c.Story {
		sites = append(sites, c.Story[i].Site)
		if a := c.Story[i].Access; a != nil {
			sites = append(sites, a.Site)
		}
	}
	if c.Interleaving != nil {
		for i := range c.Interleaving.Failing {
			sites = append(sites, c.Interleaving.Failing[i].Site)
		}
	}
	return slices.ContainsFunc(sites, func(s *evidence.Site) bool { return e.at(s, []string{via}) })
}

// at reports whether a site is at a line of the program that has one of these parts.
func (e *entry) at(s *evidence.Site, parts []string) bool {
	if s == nil || filepath.Base(s.File) != filepath.Base(e.File) {
		return false
	}
	source, err := os.ReadFile(filepath.Join(programs, e.File))
	return err == nil && slices.ContainsFunc(parts, func(part string) bool { return slices.Contains(linesWith(string(source), part), s.Line) })
}

func place(s *evidence.Site) string {
	if s == nil {
		return "no place"
	}
	return fmt.Sprintf("%s (%s:%d)", s.Function, filepath.Base(s.File), s.Line)
}
