package page

import (
	"fmt"
	"time"

	"diagnose/corpus"
	"diagnose/internal/wording"
)

const (
	// shownDays is how many days a chart has if no day is selected.
	shownDays = 42
	// mostBars bounds the bars: of a longer time, a bar is several days.
	mostBars = 60
)

// chart is the number of failures by day. Each bar selects its days; a script lets a reader draw
// over several.
type chart struct {
	Bars []bar
	// First and Last are the days at its ends, Most is the highest bar.
	First, Last string
	Most        int
	// Width is that of the picture.
	Width int
	// Each is the number of days of a bar.
	Each int
	// Selected says that days are selected, All is the address without them.
	Selected bool
	All      string
	// Action is where the form leads, From and To are its fields, Hidden its other parameters.
	Action, From, To string
	Hidden           []parameter
}

// bar is the failures of one or more days.
type bar struct {
	// From and To are the first and the last day.
	From, To string
	Count    int
	// X, Y and Height are where it is drawn, in a picture of barHeight and of barWidth for each bar.
	X, Y, Height int
	Label        string
	Href         string
	Selected     bool
}

// The picture's measures. The page stretches it.
const (
	barWidth  = 10
	barHeight = 100
)

// barOf is the height of a bar for n of most; one for few is not invisible.
func barOf(n, most int) int {
	if n == 0 || most == 0 {
		return 0
	}
	return max(3, n*barHeight/most)
}

// midnight is the begin of a moment's day in the server's time zone.
func midnight(at time.Time) time.Time {
	y, m, d := at.Local().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.Local)
}

// days counts the days from one midnight to another; a day may have 23 or 25 hours.
func days(from, to time.Time) int { return int(to.Sub(from).Round(24*time.Hour) / (24 * time.Hour)) }

// chartOf counts entries, which are selected but for their day. It shows the last shownDays, or the
// selected days with as many around them.
func chartOf(path string, s selection, list []*corpus.Entry, now time.Time) chart {
	last := midnight(now)
	first := last.AddDate(0, 0, 1-shownDays)
	if !s.From.IsZero() && s.From.Before(first) {
		first = s.From
	}
	if !s.To.IsZero() && s.To.Before(last) && days(s.To, last) > shownDays {
		last = s.To.AddDate(0, 0, shownDays/2)
	}
	if s.From.IsZero() && !s.To.IsZero() && s.To.Before(first) {
		first = s.To.AddDate(0, 0, -shownDays/2)
	}
	total := days(first, last) + 1
	each := (total + mostBars - 1) / mostBars
	// The last bar ends with the last day.
	n := (total + each - 1) / each
	first = last.AddDate(0, 0, 1-n*each)
	counts := make([]int, n)
	for _, e := range list {
		if d := days(first, midnight(e.FailedAt)); d >= 0 && d < n*each {
			counts[d/each]++
		}
	}
	c := chart{First: first.Format(time.DateOnly), Last: last.Format(time.DateOnly), Each: each, Selected: !s.From.IsZero() || !s.To.IsZero(),
		All: s.between(time.Time{}, time.Time{}).address(path), Action: path, Hidden: s.hidden(fromParameter, toParameter)}
	for name, day := range map[*string]time.Time{&c.From: s.From, &c.To: s.To} {
		if !day.IsZero() {
			*name = day.Format(time.DateOnly)
		}
	}
	for _, k := range counts {
		c.Most = max(c.Most, k)
	}
	c.Width = len(counts) * barWidth
	for i, k := range counts {
		from := first.AddDate(0, 0, i*each)
		to := from.AddDate(0, 0, each-1)
		b := bar{From: from.Format(time.DateOnly), To: to.Format(time.DateOnly), Count: k, Href: s.between(from, to).address(path),
			Selected: c.Selected && s.takesDay(from) && s.takesDay(to)}
		b.Label = fmt.Sprintf("%s: %s", b.From, wording.Count(k, "failure"))
		if each > 1 {
			b.Label = fmt.Sprintf("%s to %s: %s", b.From, b.To, wording.Count(k, "failure"))
		}
		b.X, b.Height = i*barWidth, barOf(k, c.Most)
		b.Y = barHeight - b.Height
		c.Bars = append(c.Bars, b)
	}
	return c
}
