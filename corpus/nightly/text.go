package nightly

import (
	"fmt"
	"io"
	"strings"

	"diagnose/reports"
)

// mostMissed is how many are listed in a text. The JSON has them all.
const mostMissed = 50

// WriteText writes a summary for people. Text from failing programs is cleaned.
func (s *Summary) WriteText(w io.Writer) error {
	t := &texter{}
	t.head(s)
	t.groups("New causes", s.New)
	t.groups("Fixed, and back", s.Back)
	t.groups("Known causes", s.Known)
	t.fixed(s.Fixed)
	t.missed("Not diagnosed", s.Undiagnosed)
	t.missed("Diagnosed in part", s.Partial)
	t.tracking(s.Tracking)
	t.alerting(s.Alerting)
	_, err := io.WriteString(w, t.String())
	return err
}

type texter struct{ strings.Builder }

func (t *texter) say(format string, args ...any) {
	for i := range args {
		if text, ok := args[i].(string); ok {
			args[i] = reports.Span(text)
		}
	}
	fmt.Fprintf(t, format+"\n", args...)
}

func (t *texter) head(s *Summary) {
	t.say("%s", s.headline())
	for _, f := range s.facts() {
		t.say("%s: %s", f.name, f.text)
	}
}

func (t *texter) groups(title string, list []Group) {
	if len(list) == 0 {
		return
	}
	t.say("\n%s", title)
	for i := range list {
		g := &list[i]
		t.say("\n  %s in %s (%s)", g.Kind, g.Program, g.known())
		t.say("    %s", g.Summary)
		if severity := g.severity(); severity != "" {
			t.say("    %s", severity)
		}
		t.say("    %s; first %s, last %s", g.counts(), day(g.First), day(g.Last))
		for _, note := range g.notes() {
			t.say("    %s", note)
		}
		t.say("    cluster %s, for example %s", shortDigest(g.Digest), g.Example)
	}
}

// fixed lists the fixed and quiet groups in a line each.
func (t *texter) fixed(list []Group) {
	if len(list) == 0 {
		return
	}
	t.say("\nFixed, and quiet: %d", len(list))
	for i := range list[:min(len(list), mostMissed)] {
		g := &list[i]
		t.say("  %s in %s: %s; %s, last %s, cluster %s", g.Kind, g.Program, g.Summary, strings.Join(g.notes(), ", "), day(g.Last), shortDigest(g.Digest))
	}
	if len(list) > mostMissed {
		t.say("  and %d more", len(list)-mostMissed)
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
	t.say("\n%s", k.title())
	for _, i := range k.Issues {
		text := fmt.Sprintf("%s %s", i.Kind, shortDigest(i.Digest))
		if i.Error != "" {
			t.say("  %s: %s", text, i.Error)
			continue
		}
		at := i.URL
		if at == "" {
			at = issueLabel(i.Issue, i.Digest)
		}
		t.say("  %s: %s %s", text, string(i.Action), at)
		for _, r := range i.remarks() {
			t.say("    %s", r)
		}
	}
	if len(k.Issues) == 0 && k.Error == "" {
		t.say("  nothing new")
	}
	if later := k.later(); later != "" {
		t.say("  %s", later)
	}
	if k.Error != "" {
		t.say("  The rest was not told, and is by the next night: %s", k.Error)
	}
}

func (t *texter) alerting(k *Alerting) {
	if k == nil {
		return
	}
	t.say("\n%s", k.title())
	for _, a := range k.Alerts {
		text := fmt.Sprintf("%s %s: %s", a.Kind, shortDigest(a.Digest), a.Event)
		if a.Error != "" {
			text += ", " + a.Error
		}
		t.say("  %s", text)
	}
	if summed := k.summed(); summed != "" {
		t.say("  %s", summed)
	}
	if len(k.Alerts) == 0 && k.Summed == 0 && k.Error == "" {
		t.say("  nothing new")
	}
	if k.Error != "" {
		t.say("  The rest was not sent, and is by the next night: %s", k.Error)
	}
}
