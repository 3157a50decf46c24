package page

import (
	"fmt"
	"strings"
	"time"

	"diagnose/corpus"
)

// The periods that the morning page offers.
var periods = []period{{"1d", "day", 24 * time.Hour}, {"3d", "3 days", 72 * time.Hour}, {"7d", "week", 7 * 24 * time.Hour}, {"30d", "30 days", 30 * 24 * time.Hour}}

// period is a time before now, with its name in addresses and its title for readers.
type period struct {
	name, title string
	length      time.Duration
}

// periodNamed returns the period of a name, the shortest for a name that none has.
func periodNamed(name string) period {
	for _, p := range periods {
		if p.name == name {
			return p
		}
	}
	return periods[0]
}

// standing is how a cause stands to the summaries of the nights.
type standing string

// The standings.
const (
	standsNew   standing = "new"   // no summary had it before the period
	standsBack  standing = "back"  // it was fixed, and failed since in another build
	standsKnown standing = "known" // it failed in the period
	standsFixed standing = "fixed" // it was fixed, and has not failed since in another build
	standsQuiet standing = "quiet" // none of these
)

// stands returns the standing of a cause in the period that begins at since.
func (c *cause) stands(since time.Time) standing {
	fresh := func(at *time.Time) bool { return at == nil || !at.Before(since) }
	switch {
	case c.Back != "" && fresh(c.Returned):
		return standsBack
	case fresh(c.Reported):
		return standsNew
	case c.Fixed != nil && c.Back == "":
		return standsFixed
	case !c.Last.Before(since):
		return standsKnown
	}
	return standsQuiet
}

// card is a cause as lists show it.
type card struct {
	*cause
	ID, Severity, Known string
	// Recent counts the selected failures, Share says of how many.
	Recent int
	// Spark are the failures of the last days as bars, SparkLabel has their numbers.
	Spark      []bar
	SparkLabel string
	Now        time.Time
}

// sparkDays is how many days a card's bars show.
const sparkDays = 14

func (c *cause) card(now time.Time, recent int) card {
	x := card{cause: c, ID: short(c.Digest), Recent: recent, Now: now, Known: "grouped by stack: no cause is known"}
	if c.ByCause {
		x.Known = c.Proof
	}
	if c.Estimate != "" {
		x.Severity = fmt.Sprintf("%s (%s)", c.Estimate, c.Class)
	}
	counts, most := make([]int, sparkDays), 0
	first := midnight(now).AddDate(0, 0, 1-sparkDays)
	for i := range c.Entries {
		if c.Entries[i].FailedAt.Before(first) {
			break // the newest is first
		}
		if d := days(first, midnight(c.Entries[i].FailedAt)); d >= 0 && d < sparkDays {
			counts[d]++
			most = max(most, counts[d])
		}
	}
	for i, n := range counts {
		h := barOf(n, most)
		x.Spark = append(x.Spark, bar{X: i * barWidth, Y: barHeight - h, Height: h})
	}
	x.SparkLabel = fmt.Sprintf("failures of the last %d days, the latest last: %s", sparkDays, strings.Trim(fmt.Sprint(counts), "[]"))
	return x
}

// recent counts the failures since a moment.
func (c *cause) recent(since time.Time) int {
	for i := range c.Entries {
		if c.Entries[i].FailedAt.Before(since) {
			return i
		}
	}
	return len(c.Entries)
}

// part is a list of causes with one standing.
type part struct {
	ID, Title string
	Alarm     bool
	Cards     []card
	// More counts those that are not shown, All is where they are.
	More int
	All  string
}

// mostCards bounds the causes of a part of the morning page.
const mostCards = 25

func (s *Server) morning(q *request) error {
	st, err := q.state()
	if err != nil {
		return err
	}
	chosen := periodNamed(q.FormValue(sinceParameter))
	var links []choice
	for _, p := range periods {
		links = append(links, choice{Name: p.title, Href: "/?since=" + p.name, Chosen: p.name == chosen.name})
	}
	now := s.keep.now()
	since := now.Add(-chosen.length)
	parts := []part{{ID: "new", Title: "New causes", Alarm: true}, {ID: "back", Title: "Fixed, and back", Alarm: true}, {ID: "known", Title: "Known causes that failed again"}}
	for i := range st.causes {
		c := &st.causes[i]
		for k, want := range []standing{standsNew, standsBack, standsKnown} {
			if c.stands(since) != want {
				continue
			}
			if len(parts[k].Cards) == mostCards {
				parts[k].More, parts[k].All = parts[k].More+1, selection{State: want, Since: chosen.name}.address("/causes")
				continue
			}
			parts[k].Cards = append(parts[k].Cards, c.card(now, c.recent(since)))
		}
	}
	var failed []*corpus.Entry
	data := struct {
		frame
		Period                            string
		Periods                           []choice
		Parts                             []part
		Chart                             chart
		Recent, Pending, Undiagnosed      int
		Hidden, Left                      int
		OldestPending                     string
		NewCount, BackCount, FailingTests int
	}{frame: s.frame(q, "Morning", "/"), Period: chosen.title, Periods: links, Parts: parts, Hidden: st.hidden, Left: st.left}
	for i := range st.entries {
		e := &st.entries[i]
		if e.Passed {
			continue
		}
		failed = append(failed, e)
		if !e.FailedAt.Before(since) {
			data.Recent++
		}
		switch {
		case e.Diagnosis == nil:
			data.Pending++
			data.OldestPending = ago(now, e.AddedAt)
		case !e.Diagnosis.Diagnosed:
			data.Undiagnosed++
		}
	}
	data.NewCount, data.BackCount = len(parts[0].Cards)+parts[0].More, len(parts[1].Cards)+parts[1].More
	data.Chart = chartOf("/failures", selection{Page: 1}, failed, now)
	return s.show(q, "morning", data)
}
