package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"diagnose/replay/explore"
	"diagnose/reports"
)

// huntReport is what hunt and minimize tell, and the form of their JSON. Fields are
// added and never change their meaning.
type huntReport struct {
	// Version of this form, MAJOR.MINOR.
	Version string   `json:"version"`
	Program []string `json:"program,omitempty"`
	// Recording is minimize's.
	Recording string `json:"recording,omitempty"`
	*explore.HuntResult
}

const huntReportVersion = "1.0"

func (f *huntFlags) tell(c *cobra.Command, r *huntReport) error {
	return f.emit(c, r, r.listing(f))
}

// emit writes a report as JSON or for people.
func (f *huntFlags) emit(c *cobra.Command, r any, text *reports.Listing) error {
	asJSON := f.format == string(reports.JSON)
	return f.show(c.OutOrStdout(), asJSON, func(w io.Writer) error {
		if asJSON {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(r)
		}
		return text.WriteText(w)
	})
}

func (r *huntReport) listing(f *huntFlags) *reports.Listing {
	out := &reports.Listing{}
	line := out.Named
	if r.Recording == "" {
		r.figures(line)
	}
	if !r.Found {
		if r.Ready < 2 {
			line("", "no two threads could ever run at the same time, so there was nothing to choose")
		}
		line("next", "%s --resume -- %s", r.command(f), quoted(r.Program))
		return out
	}
	switch {
	case r.Recording != "":
		line("failure", "%s", r.Failure.Text)
	case r.Plain:
		line("failure", "%s, if no thread is preempted", r.Failure.Text)
	default:
		line("failure", "%s, with seed %d", r.Failure.Text, r.Seed)
	}
	if r.Minimal != nil {
		r.minimal(line)
	}
	if r.Recording == "" && !r.Plain {
		line("again", "%s --length %d --first-seed %d --seeds 1 -- %s", r.command(f), r.Length, r.Seed, quoted(r.Program))
	}
	return out
}

func (r *huntReport) figures(line func(name, format string, args ...any)) {
	rate := ""
	if r.Time > 0 {
		rate = fmt.Sprintf(" in %.1f s", r.Time)
	}
	line("schedules", "%d%s, %d of them different, of about %d steps", r.Schedules, rate, r.Distinct, r.Steps)
	if g := r.Globals; g != nil {
		line("points", "%d of %d instructions that access global variables", g.Points, g.Of)
	}
	if r.Hung > 0 {
		line("", "%d did not end in time: a thread computed, or read a variable again and again, and kept the other threads from running", r.Hung)
	}
}

func (r *huntReport) minimal(line func(name, format string, args ...any)) {
	m := r.Minimal
	line("needed", "%s; %d of %d decisions are left, after %d more schedules", preemptions(m.Preemptions), len(m.Decisions), m.Before, m.Runs)
	for _, d := range m.Decisions[:min(len(m.Decisions), mostShownDecisions)] {
		line("", "%v", d)
	}
	if n := len(m.Decisions) - mostShownDecisions; n > 0 {
		line("", "and %d more", n)
	}
	if m.LeftOut != "" {
		line("", "%s", m.LeftOut)
	}
	if m.FailingDir == "" {
		return
	}
	failing, passing := shellQuote(relative(m.FailingDir)), ""
	line("failing", "%s", failing)
	if m.PassingDir != "" {
		passing = shellQuote(relative(m.PassingDir))
		line("passing", "%s", passing)
		passing = " --passing " + passing
	}
	line("cause", "diagnose crash --recording %s%s", failing, passing)
}

const mostShownDecisions = 12

func preemptions(n int) string {
	switch n {
	case 0:
		return "no preemption"
	case 1:
		return "1 preemption"
	}
	return fmt.Sprintf("%d preemptions", n)
}

// command returns the command line that made the report, without the options that do not affect the
// runs.
func (r *huntReport) command(f *huntFlags) string {
	text := fmt.Sprintf("diagnose hunt --strategy %s --depth %d", r.Strategy, r.Depth)
	if !f.globals {
		text += " --globals=false"
	}
	if f.failIf != "" {
		text += " --fail-if " + shellQuote(f.failIf)
	}
	return text
}

func quoted(args []string) string {
	list := make([]string, len(args))
	for i, a := range args {
		list[i] = shellQuote(a)
	}
	return strings.Join(list, " ")
}
