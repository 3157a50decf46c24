package nightly

import (
	"fmt"
	"io"
	"strings"
	"time"

	"diagnose/reports"
)

// mostMissed are listed in a text; the JSON has them all.
const mostMissed = 50

// WriteText writes a summary for people. What came from failing programs is cleaned.
func (s *Summary) WriteText(w io.Writer) error {
	t := &texter{}
	t.head(s)
	t.groups("New causes", s.New, s)
	t.groups("Fixed, and back", s.Back, s)
	t.groups("Known causes", s.Known, s)
	if s.Quiet > 0 {
		t.say("\n%s did not fail in this time.", plural(s.Quiet, "known cause"))
	}
	t.missed("Not diagnosed", s.Undiagnosed)
	t.missed("Diagnosed in part", s.Partial)
	t.tracking(s.Tracking)
	_, err := io.WriteString(w, t.String())
	return err
}

type texter struct{ strings.Builder }

func (t *texter) say(format string, args ...any) {
	for i := range args {
		if text, ok := args[i].(string); ok {
			args[i] = reports.Clean(text)
		}
	}
	fmt.Fprintf(t, format+"\n", args...)
}

func (t *texter) head(s *Summary) {
	t.say("%s since %s (%d in as long a time before), in %s", plural(s.Failures, "failure"), s.Since.Local().Format(time.DateTime), s.FailuresBefore, s.Corpus)
	t.say("%s, %d back, %d known", plural(len(s.New), "new cause"), len(s.Back), len(s.Known))
	r := &s.Run
	if done := r.Diagnosed + r.Undiagnosed; done > 0 {
		t.say("diagnosed %d of %d in %v by diagnose %s, %.0f for each hour of a processor", r.Diagnosed, done, r.Ended.Sub(r.Started).Round(time.Second), r.Version, r.PerCoreHour)
	} else {
		t.say("nothing was left to be diagnosed by diagnose %s", r.Version)
	}
	if r.NotReached > 0 {
		t.say("the budget was over before %s; another night goes on with them", plural(r.NotReached, "failure"))
	}
}

func (t *texter) groups(title string, list []Group, s *Summary) {
	if len(list) == 0 {
		return
	}
	t.say("\n%s", title)
	for i := range list {
		g := &list[i]
		what := "no cause is known, grouped by stack"
		if g.ByCause {
			what = g.Proof
		}
		t.say("\n  %s in %s (%s)", g.Kind, g.Program, what)
		t.say("    %s", g.Summary)
		t.say("    %d now, %d before, %d in all, %s; first %s, last %s", g.Recent, g.Earlier, g.Count, g.Trend, day(g.First), day(g.Last))
		if g.Stacks > 1 {
			t.say("    %d different stacks", g.Stacks)
		}
		if g.Fixed != nil {
			note := ""
			if g.Note != "" {
				note = " (" + g.Note + ")"
			}
			t.say("    marked as fixed %s%s", day(*g.Fixed), note)
		}
		if g.Back != "" {
			t.say("    back since %s", g.Back)
		}
		t.say("    cluster %s, for example %s", g.Digest[:min(12, len(g.Digest))], g.Example)
	}
}

func (t *texter) missed(title string, list []Missed) {
	if len(list) == 0 {
		return
	}
	t.say("\n%s: %d", title, len(list))
	for _, m := range list[:min(len(list), mostMissed)] {
		t.say("  %s  %s %s: %s", m.Entry, m.Program, m.Ended, m.Reason)
	}
	if len(list) > mostMissed {
		t.say("  and %d more", len(list)-mostMissed)
	}
}

func (t *texter) tracking(k *Tracking) {
	if k == nil {
		return
	}
	title := "Told to " + k.Tracker
	if k.DryRun {
		title = "What would be told to " + k.Tracker
	}
	t.say("\n%s", title)
	for _, i := range k.Issues {
		text := fmt.Sprintf("%s %s", i.Kind, i.Digest[:min(12, len(i.Digest))])
		if i.Error != "" {
			t.say("  %s: %s", text, i.Error)
			continue
		}
		at := i.URL
		if at == "" {
			at = i.Issue
		}
		t.say("  %s: %s %s", text, string(i.Action), at)
		for _, d := range i.Duplicates {
			t.say("    its duplicate %s is closed", d)
		}
		if i.Note != "" {
			t.say("    %s", i.Note)
		}
	}
	if len(k.Issues) == 0 && k.Error == "" {
		t.say("  nothing new")
	}
	if k.Later > 0 {
		t.say("  %s left for another night, as enough were opened in this one", plural(k.Later, "cause"))
	}
	if k.Error != "" {
		t.say("  The rest was not told, and is by the next night: %s", k.Error)
	}
}

func day(at time.Time) string { return at.Local().Format("2006-01-02 15:04") }

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
