package show

import (
	"cmp"
	"fmt"
	"slices"

	"diagnose/ask"
	"diagnose/evidence"
)

// timeline is an answer as a picture: a row for each thread, time runs to the right. All lengths are in units of its view box.
// It has exported fields because templates see no others.
type timeline struct {
	Width, Height int
	Label         string
	Rows          []timelineRow
	Bars          []timelineBar
	Marks         []timelineMark
	Ticks         []timelineTick
	// Axis is where the ticks are.
	Axis int
	// More counts the marks that are left out.
	More int
}

// timelineRow is the row of a thread.
type timelineRow struct {
	Y, From, To, LabelY int
	Label               string
}

// timelineBar is something that lasted, such as a hold of a lock.
type timelineBar struct {
	X, Y, Width, Height int
	Class, Target, What string
}

// timelineMark is something that happened at once.
type timelineMark struct {
	X, Y                int
	Class, Target, What string
}

type timelineTick struct {
	X, TextY int
	Label    string
}

const (
	timelineLeft, timelineWidth, timelineRight = 150, 900, 20
	timelineTop, timelineStep                  = 14, 30
	barHeight                                  = 12
	// mostMarks bounds the marks and bars, mostLanes the rows.
	mostMarks = 2000
	mostLanes = 64
	ticks     = 5
)

// happening is a row of an answer as the timeline sees it.
type happening struct {
	thread   uint32
	from     uint64 // position
	to       uint64 // of something that lasted
	lasts    bool
	class    string
	what     string
	sequence int // index of the row
}

// happenings are the rows of an answer.
func happenings(a *ask.Answer, t *table) []happening {
	var list []happening
	add := func(thread uint32, at *ask.Instant, class string) *happening {
		n := len(list)
		list = append(list, happening{thread: thread, from: at.Position, class: class, sequence: n, what: rowText(t, n)})
		return &list[n]
	}
	end := a.Span.Events
	if a.Span.Until != nil {
		end = a.Span.Until.Position
	}
	for i := range a.Writes {
		add(a.Writes[i].Thread, &a.Writes[i].Instant, "write")
	}
	for i := range a.Values {
		add(a.Values[i].Thread, &a.Values[i].Instant, "write")
	}
	for i := range a.Calls {
		h := add(a.Calls[i].Thread, &a.Calls[i].Instant, "call")
		if r := a.Calls[i].Returned; r != nil {
			h.lasts, h.to = true, r.Position
		}
	}
	for i := range a.Executed {
		add(a.Executed[i].Thread, &a.Executed[i].Instant, "call")
	}
	for i := range a.Did {
		add(a.Did[i].Thread, &a.Did[i].Instant, string(a.Did[i].Kind))
	}
	for i := range a.Holds {
		h := add(a.Holds[i].Thread, &a.Holds[i].Instant, "hold")
		h.lasts, h.to = true, end
		if r := a.Holds[i].Released; r != nil {
			h.to = r.Position
		}
	}
	return list
}

// rowText is a row of the table in one line.
func rowText(t *table, n int) string {
	text := ""
	for i, cell := range t.rows[n] {
		if cell == "" {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += t.columns[i].Name + " " + cell
	}
	return text
}

// scale turns positions into places of the picture. Rows at one position are side by side, in their order.
type scale struct {
	first, last uint64
	// at counts the rows at each position.
	at map[uint64]int
}

func newScale(list []happening) *scale {
	s := &scale{first: ^uint64(0), at: map[uint64]int{}}
	for i := range list {
		h := &list[i]
		s.first, s.last = min(s.first, h.from), max(s.last, h.from, h.to)
		s.at[h.from]++
	}
	return s
}

// x is the place of the n-th of the rows at a position.
func (s *scale) x(position uint64, n int) int {
	span := float64(s.last-s.first) + 1
	part := float64(position-s.first) + float64(n)/float64(s.at[position]+1)
	return timelineLeft + int(part/span*timelineWidth)
}

// timelineOf makes the picture; nil: there is nothing to draw.
func timelineOf(a *ask.Answer, t *table) *timeline {
	list := happenings(a, t)
	if len(list) == 0 {
		return nil
	}
	p := &timeline{Label: Headline(a)}
	if p.More = len(list) - mostMarks; p.More > 0 {
		list = list[:mostMarks]
	}
	p.More = max(p.More, 0)
	lanes := p.lanes(a, list)
	s := newScale(list)
	seen := map[uint64]int{}
	for i := range list {
		h := &list[i]
		y, drawn := lanes[h.thread]
		if !drawn {
			p.More++
			continue
		}
		seen[h.from]++
		x, target := s.x(h.from, seen[h.from]), fmt.Sprintf("row-%d", h.sequence+1)
		if !h.lasts {
			p.Marks = append(p.Marks, timelineMark{X: x, Y: y, Class: h.class, Target: target, What: h.what})
			continue
		}
		p.Bars = append(p.Bars, timelineBar{X: x, Y: y - barHeight/2, Width: max(s.x(h.to, s.at[h.to])-x, 3), Height: barHeight, Class: h.class, Target: target, What: h.what})
	}
	p.ticks(s)
	return p
}

// lanes makes the rows of the threads that did something.
func (p *timeline) lanes(a *ask.Answer, list []happening) map[uint32]int {
	lanes := map[uint32]int{}
	var threads []uint32
	for i := range list {
		if !slices.Contains(threads, list[i].thread) && len(threads) < mostLanes {
			threads = append(threads, list[i].thread)
		}
	}
	slices.SortFunc(threads, cmp.Compare[uint32])
	y := timelineTop
	for _, n := range threads {
		label := "the start"
		if n != 0 {
			label = threadLabel(a, n)
		}
		p.Rows = append(p.Rows, timelineRow{Y: y, LabelY: y + 4, From: timelineLeft, To: timelineLeft + timelineWidth, Label: label})
		lanes[n] = y
		y += timelineStep
	}
	p.Axis = y - timelineStep/2
	p.Width, p.Height = timelineLeft+timelineWidth+timelineRight, y+10
	return lanes
}

func threadLabel(a *ask.Answer, n uint32) string {
	i := slices.IndexFunc(a.Threads, func(t evidence.ThreadRef) bool { return t.Number == int(n) })
	if i < 0 {
		return fmt.Sprintf("thread %d", n)
	}
	const most = 20
	label := []rune(a.Threads[i].Label())
	if len(label) > most {
		return string(label[:most-3]) + "..."
	}
	return string(label)
}

// ticks adds positions below the rows.
func (p *timeline) ticks(s *scale) {
	last := -1
	for n := range uint64(ticks) {
		position := s.first + (s.last-s.first)*n/(ticks-1)
		x := timelineLeft + int(float64(position-s.first)/(float64(s.last-s.first)+1)*timelineWidth)
		if x == last {
			continue
		}
		p.Ticks, last = append(p.Ticks, timelineTick{X: x, TextY: p.Axis + 16, Label: fmt.Sprint(position)}), x
	}
}
