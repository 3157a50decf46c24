package reports

import (
	"fmt"
	"path"
	"strings"

	"diagnose/evidence"
)

// htmlTimelines are the failing run and, if there is one, the passing one, side
// by side.
type htmlTimelines struct {
	Runs []htmlTimeline
	// Accesses are described below the pictures; a mark leads there, and the
	// page shows them beside the mark that is pointed at or has the focus.
	Accesses []htmlAccess
}

// htmlTimeline is one run as a picture: threads are lanes from left to right,
// time runs down. All lengths are in units of its view box.
type htmlTimeline struct {
	ID, Title, Verdict string
	Failing            bool
	Width, Height      int
	Lanes              []htmlLane
	Holds, Kept        []htmlHold
	Steps              []htmlArrow
	Marks              []htmlMark
	// More counts the accesses left out.
	More int
}

type htmlLane struct {
	X, Top, Bottom int
	Label          string
	Title          string
}

// htmlHold says that a lock was held at an access; with a Bottom, that nobody else
// had it between that access and a later one there.
type htmlHold struct {
	X, Y, Bottom int
	Title        string
}

// htmlArrow leads from an access to the next one in time, by a bend that keeps
// clear of what is written to the right of both.
type htmlArrow struct{ X1, Y1, BendX, BendY, X2, Y2 int }

func arrow(from, to *htmlMark) htmlArrow {
	a := htmlArrow{from.X, from.Y, from.X, to.Y, to.X, to.Y}
	if to.X < from.X {
		a.BendX, a.BendY = to.X, from.Y
	}
	return a
}

// htmlMark is an access. Write and Read say how it is drawn; Alone marks the
// access of the other thread between two that belong together.
type htmlMark struct {
	ID          string
	Target      string
	X, Y        int
	Number      int
	Write, Read bool
	Between     bool
	What        string
	Function    string
	Where       string
	Title       string
}

// htmlAccess is the description of an access.
type htmlAccess struct {
	ID    string
	Run   string
	Title htmlLine
	Facts []htmlFact
	Parts []htmlNode
}

const (
	laneWidth  = 228
	laneTop    = 44
	rowHeight  = 62
	markIndent = 26
	// maxTimeline bounds the accesses drawn of one run.
	maxTimeline = 60
	// labelRunes is how many characters of a label fit beside a mark.
	labelRunes = 25
)

// htmlInterleaving shows an interleaving: the facts of the other formats, the
// timelines, the code with the accesses' numbers, the accesses.
func htmlInterleaving(id string, i *evidence.Interleaving, sources []evidence.Source) []htmlNode {
	words := *i
	words.Failing, words.Passing = nil, nil
	blocks := interleaving(&words)
	nodes := htmlNodes(blocks[:1]) // the facts; the table behind them is the picture here
	t := &htmlTimelines{}
	add := func(name, title, verdict string, failing bool, list []evidence.SeenAccess) {
		run := fmt.Sprintf("%s-%s", id, name)
		t.Runs = append(t.Runs, timeline(run, title, verdict, failing, list, wordsFor(i)))
		for n := range list[:min(len(list), maxTimeline)] {
			t.Accesses = append(t.Accesses, htmlAccessOf(fmt.Sprintf("%s-%d", run, n+1), title, n+1, &list[n], sources))
		}
	}
	add("failing", "Failing run", "this order fails", true, i.Failing)
	if len(i.Passing) > 0 {
		add("passing", "Passing run", "this order passes", false, i.Passing)
	}
	nodes = append(nodes, htmlNode{Timelines: t})
	code := accessSources(i.Failing, sources)
	if len(code) > 0 {
		nodes = append(nodes, htmlNode{Heading: "The code, with the accesses of the failing run in their order"})
	}
	return append(nodes, code...)
}

func timeline(id, title, verdict string, failing bool, list []evidence.SeenAccess, verbs func(*evidence.SeenAccess) string) htmlTimeline {
	t := htmlTimeline{ID: id, Title: title, Verdict: verdict, Failing: failing, More: max(0, len(list)-maxTimeline)}
	list = list[:len(list)-t.More]
	lanes := map[lane]int{}
	var order []lane
	labels := map[lane]string{}
	for i := range list {
		l := laneOf(&list[i])
		if _, seen := lanes[l]; !seen {
			lanes[l] = len(order)
			order = append(order, l)
			labels[l] = list[i].Thread.Label()
			if l.handler != "" {
				labels[l] = fmt.Sprintf("%s in thread %d", l.handler, l.thread)
			}
		}
	}
	t.Width = max(1, len(order)) * laneWidth
	t.Height = laneTop + len(list)*rowHeight + 8
	for n, l := range order {
		t.Lanes = append(t.Lanes, htmlLane{X: n*laneWidth + markIndent, Top: laneTop - 12, Bottom: t.Height - 4,
			Label: Clean(brief(labels[l], labelRunes)), Title: Clean(labels[l])})
	}
	for i := range list {
		a := &list[i]
		t.Marks = append(t.Marks, markOf(id, i, a, lanes[laneOf(a)]*laneWidth+markIndent, verbs))
		if i > 0 {
			t.Steps = append(t.Steps, arrow(&t.Marks[i-1], &t.Marks[i]))
		}
	}
	t.Holds, t.Kept = holds(list, t.Marks)
	if failing {
		markBetween(list, t.Marks)
	}
	return t
}

// lane is what one lane is of: a thread, or the handler of a signal that came to
// it.
type lane struct {
	thread  int
	handler string
}

func laneOf(a *evidence.SeenAccess) lane { return lane{a.Thread.Number, a.Handler} }

// markOf draws an access; words say what it did.
func markOf(id string, i int, a *evidence.SeenAccess, x int, words func(*evidence.SeenAccess) string) htmlMark {
	m := htmlMark{ID: fmt.Sprintf("%s-mark-%d", id, i+1), Target: fmt.Sprintf("%s-%d", id, i+1),
		X: x, Y: laneTop + i*rowHeight + rowHeight/2 - 8, Number: i + 1,
		Read: a.Kind != evidence.Write, Write: a.Kind == evidence.Write || a.Kind == evidence.ReadWrite}
	m.What = Clean(brief(words(a), labelRunes))
	function, at := placeWords(a.Site)
	m.Function, m.Where = Clean(brief(function, labelRunes)), Clean(brief(at, labelRunes))
	m.Title = fmt.Sprintf("%d: %s", i+1, cutSpan(accessCell(a)))
	return m
}

// wordsFor says how the marks of an interleaving are labelled: by values, or by
// variables where there are several.
func wordsFor(i *evidence.Interleaving) func(*evidence.SeenAccess) string {
	switch {
	case i.Pattern == evidence.PatternLockOrder:
		return func(a *evidence.SeenAccess) string { return "asks for " + a.Variable }
	case len(i.Variables) > 1:
		return func(a *evidence.SeenAccess) string { return accessVerb(a) + " " + a.Variable }
	}
	return valueWords
}

func accessVerb(a *evidence.SeenAccess) string {
	if a.Kind == evidence.Read {
		return "reads"
	}
	return "writes"
}

// valueWords is what an access did, short enough for a picture.
func valueWords(a *evidence.SeenAccess) string {
	value := a.New
	if a.Kind == evidence.Read {
		value = a.Old
	}
	if a.Kind != evidence.Read && a.Old != "" && len(a.Old)+len(a.New) < labelRunes-12 {
		value = a.Old + " \u2192 " + a.New
	}
	if value == "" {
		return accessVerb(a)
	}
	return accessVerb(a) + " " + value
}

// placeWords are the function and the line of a place, as far as they are known.
func placeWords(s *evidence.Site) (function, at string) {
	switch {
	case s == nil:
		return "", ""
	case s.File != "":
		at = fmt.Sprintf("%s:%d", path.Base(s.File), s.Line)
	case s.Module != "":
		at = fmt.Sprintf("%s+%v", path.Base(s.Module), s.ModuleOffset)
	}
	return functionOf(*s), at
}

// holds are the locks held at the accesses. Two accesses with the same
// acquisition may still be of two critical sections: a lock that its last owner
// takes again makes no event (evidence.Lock).
func holds(list []evidence.SeenAccess, marks []htmlMark) (held, kept []htmlHold) {
	type section struct {
		thread int
		lock   evidence.Lock
	}
	last := map[section]int{}
	for i := range list {
		if len(list[i].Locks) > 0 {
			held = append(held, htmlHold{X: marks[i].X, Y: marks[i].Y, Title: Clean(list[i].Thread.Label() + " " + lockWords(list[i].Locks))})
		}
		for _, l := range list[i].Locks {
			key := section{list[i].Thread.Number, l}
			if n, seen := last[key]; seen && l.Taken != 0 {
				kept = append(kept, htmlHold{X: marks[i].X, Y: marks[n].Y, Bottom: marks[i].Y,
					Title: Clean("no other thread had " + strings.TrimPrefix(lockWords([]evidence.Lock{l}), "holds ") + " in between")})
			}
			last[key] = i
		}
	}
	return held, kept
}

// markBetween marks the accesses that another thread, or a signal's handler, made
// between two of one thread.
func markBetween(list []evidence.SeenAccess, marks []htmlMark) {
	for i := 1; i+1 < len(list); i++ {
		own := laneOf(&list[i])
		before, after := laneOf(&list[i-1]), laneOf(&list[i+1])
		marks[i].Between = own != before && before == after
	}
}

func htmlAccessOf(id, run string, number int, a *evidence.SeenAccess, sources []evidence.Source) htmlAccess {
	x := htmlAccess{ID: id, Run: run, Title: htmlLineOf(say(strong, fmt.Sprintf("%s, %d: ", strings.ToLower(run), number)).and(plain, accessWords(a)))}
	list := facts{{"locks", say(plain, lockWords(a.Locks))}, {"moment", say(faint, a.Moment.String())}}
	if a.Site != nil {
		list = append(facts{{"where", siteLine(*a.Site)}}, list...)
	}
	x.Facts = htmlFacts(list)
	if a.Site != nil {
		if s := htmlSourceOf(sourceAround(*a.Site, sources), nil); s != nil {
			x.Parts = append(x.Parts, htmlNode{Source: s})
		}
	}
	if len(a.Stack.Frames) > 0 {
		x.Parts = append(x.Parts, htmlNode{Stack: htmlStackOf(say(strong, "Stack"), untilStart(a.Stack), true)})
	}
	return x
}
