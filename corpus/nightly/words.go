package nightly

import (
	"fmt"
	"time"

	"diagnose/internal/wording"
)

// The text and the page share these words.

// fact is a named line about the night as a whole.
type fact struct {
	name, text string
	alarm      bool
}

// headline summarizes the causes in one line.
func (s *Summary) headline() string {
	return fmt.Sprintf("%s, %d back, %d known", wording.Count(len(s.New), "new cause"), len(s.Back), len(s.Known))
}

func (s *Summary) facts() []fact {
	r := &s.Run
	list := []fact{
		{name: "failures", text: fmt.Sprintf("%d since %s, %d in as long a time before", s.Failures, s.Since.Local().Format(time.DateTime), s.FailuresBefore)},
		{name: "corpus", text: s.Corpus},
	}
	if done := r.Diagnosed + r.Undiagnosed; done > 0 {
		list = append(list, fact{name: "diagnosed", text: fmt.Sprintf("%d of %d in %v by diagnose %s, %.0f for each hour of a processor",
			r.Diagnosed, done, r.Ended.Sub(r.Started).Round(time.Second), r.Version, r.PerCoreHour)})
	} else {
		list = append(list, fact{name: "diagnosed", text: "nothing was left to be diagnosed by diagnose " + r.Version})
	}
	if r.Fleet != nil {
		list = append(list, r.Fleet.facts(r.Memory)...)
	} else if r.Memory > 0 {
		list = append(list, fact{name: "memory", text: budget(r.Memory, r.MemoryBy, r.MemoryWhy)})
	}
	if r.NotReached > 0 {
		list = append(list, fact{name: "not reached", text: fmt.Sprintf("the budget was over before %s; the next night continues with them", wording.Count(r.NotReached, "failure")), alarm: true})
	}
	if r.NotTrusted > 0 {
		list = append(list, fact{name: "not replayed", text: wording.Count(r.NotTrusted, "recording") + " came from elsewhere: to replay one is to run what its sender chose (--trust-imported does)"})
	}
	for i := range s.Suppressed {
		x := &s.Suppressed[i]
		list = append(list, fact{name: "suppressed", text: fmt.Sprintf("%s since then, %d in all, by %s", wording.Count(x.Recent, "failure"), x.Count, x.line())})
	}
	for i := range s.Expired {
		x := &s.Expired[i]
		list = append(list, fact{name: "expired", text: fmt.Sprintf("%s not suppressed any more by %s", wording.Count(x.Count, "failure"), x.line()), alarm: true})
	}
	for i := range s.Unused {
		list = append(list, fact{name: "unused", text: "no failure fits the suppression of " + s.Unused[i].line(), alarm: true})
	}
	if s.Quiet > 0 {
		list = append(list, fact{name: "quiet", text: wording.Count(s.Quiet, "known cause") + " did not fail in this time"})
	}
	return list
}

// known says by what the group was recognised.
func (g *Group) known() string {
	if g.ByCause {
		return g.Proof
	}
	return "no cause is known, grouped by stack"
}

// severity is the estimate with its class; "" if none is known.
func (g *Group) severity() string {
	if g.Estimate == "" {
		return ""
	}
	return fmt.Sprintf("%s (%s)", g.Estimate, g.Class)
}

// trend compares how often the group failed with the period before.
func (g *Group) trend() string {
	switch {
	case g.Recent > g.Earlier:
		return fmt.Sprintf("rising from %d to %d", g.Earlier, g.Recent)
	case g.Recent < g.Earlier:
		return fmt.Sprintf("falling from %d to %d", g.Earlier, g.Recent)
	}
	return fmt.Sprintf("steady at %d", g.Recent)
}

func (g *Group) counts() string { return fmt.Sprintf("%s, %d in all", g.trend(), g.Count) }

func (g *Group) notes() []string {
	var list []string
	if g.Stacks > 1 {
		list = append(list, fmt.Sprintf("%d different stacks", g.Stacks))
	}
	if g.Fixed != nil {
		note := ""
		if g.Note != "" {
			note = " (" + g.Note + ")"
		}
		list = append(list, "marked as fixed "+day(*g.Fixed)+note)
	}
	if g.Back != "" {
		list = append(list, "back since "+g.Back)
	}
	return list
}

func (k *Tracking) title() string {
	if k.DryRun {
		return "What would be told to " + k.Tracker
	}
	return "Told to " + k.Tracker
}

// later says how much is left for another night; "" if nothing is left.
func (k *Tracking) later() string {
	if k.Later == 0 {
		return ""
	}
	return wording.Count(k.Later, "cause") + " left for another night, as enough were opened in this one"
}

func (t *Tracked) remarks() []string {
	var list []string
	for _, d := range t.Duplicates {
		list = append(list, "its duplicate "+d+" is closed")
	}
	if t.Note != "" {
		list = append(list, t.Note)
	}
	return list
}

// shortDigest returns the part of a digest that distinguishes clusters.
func shortDigest(digest string) string { return digest[:min(12, len(digest))] }

// issueLabel returns the name of an issue for people. If a tracker names issues by the digests
// of their clusters, it is the short digest.
func issueLabel(issue, digest string) string {
	if issue == digest {
		return shortDigest(digest)
	}
	return issue
}

func day(at time.Time) string { return at.Local().Format("2006-01-02 15:04") }
