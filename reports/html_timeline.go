package reports

import (
	"fmt"
	"strings"

	"diagnose/evidence"
)

// htmlTimelines are the failing run and, if there is one, the passing one, side
// by side.
type htmlTimelines struct {
	Runs []htmlTimeline
	// Accesses describe the marks, below the pictures. A mark leads to its description. The page
	// also shows the description next to a mark that has the pointer or the focus.
	Accesses []htmlAccess
	// Threads says that marks may come between those of another thread.
	Threads bool
}

// htmlTimeline is one run as a picture: threads are lanes from left to right, time runs down, and
// the label of a mark is to the right of all lanes. All lengths are in units of its view box.
type htmlTimeline struct {
	ID, Title, Verdict string
	Failing            bool
	Width, Height      int
	// TextX is where the words begin.
	TextX       int
	Lanes       []htmlLane
	Holds, Kept []htmlHold
	Steps       []htmlArrow
	Marks       []htmlMark
	// More counts the marks that are left out.
	More int
}

type htmlLane struct {
	X, Top, Bottom int
	Label          string
	Title          string
}

// htmlHold says that a lock was held at an access. With a Bottom, no other thread had the lock
// between that access and a later one at Bottom.
type htmlHold struct {
	X, Y, Bottom int
	Title        string
}

// htmlArrow leads from a mark to the next one in time.
type htmlArrow struct{ X1, Y1, X2, Y2 int }

// htmlMark is a happening. Kind says how it is drawn; Between marks what another
// thread did between two accesses that belong together.
type htmlMark struct {
	ID, Target string
	X, Y       int
	Number     int
	Kind       happeningKind
	Between    bool
	What       string
	Where      string
	Thread     string
	Title      string
}

// htmlAccess is the description of a mark.
type htmlAccess struct {
	ID    string
	Title htmlLine
	Facts []htmlFact
	Parts []htmlNode
}

const (
	laneTop    = 26
	rowHeight  = 58
	markIndent = 18
	// laneStep is the distance of lanes, lanesWide the most room for all of them.
	laneStep, lanesWide = 38, 190
	// wordsWide is the room for the words of a mark, so that a picture of two threads
	// is not wider than a telephone.
	wordsWide = 290
	// maxTimeline bounds the marks drawn of one run.
	maxTimeline = 60
	// labelRunes is how many characters of a label fit next to a mark.
	labelRunes = 44
)

// timelinesOf shows runs, the failing one first. The ids of their parts begin with id.
func timelinesOf(id string, code *htmlCode, prefix string, failing, passing []happening) *htmlTimelines {
	t := &htmlTimelines{}
	add := func(name, title, verdict, mark string, list []happening) {
		run := id + "-" + name
		x := timeline(run, title, verdict, name == "failing", list)
		t.Runs = append(t.Runs, x)
		t.Threads = t.Threads || len(x.Lanes) > 1
		for n := range list[:min(len(list), maxTimeline)] {
			// The passing run executes the same code, so its lines have the marks of the failing
			// run.
			at := code.place(list[n].site)
			if name == "failing" {
				at = code.mark(list[n].site, mark+fmt.Sprint(n+1))
			}
			t.Accesses = append(t.Accesses, describe(fmt.Sprintf("%s-%d", run, n+1), title, n+1, &list[n], at))
		}
	}
	verdict := ""
	if len(passing) > 0 {
		verdict = "this order fails"
	}
	add("failing", "Failing run", verdict, prefix, failing)
	if len(passing) > 0 {
		add("passing", "Passing run", "this order passes", prefix, passing)
	}
	return t
}

func timeline(id, title, verdict string, failing bool, list []happening) htmlTimeline {
	t := htmlTimeline{ID: id, Title: title, Verdict: verdict, Failing: failing, More: max(0, len(list)-maxTimeline)}
	list = list[:len(list)-t.More]
	columns := map[lane]int{}
	var labels []string
	for i := range list {
		if _, seen := columns[list[i].lane]; !seen {
			columns[list[i].lane] = len(columns)
			labels = append(labels, list[i].thread)
		}
	}
	step := min(laneStep, lanesWide/max(1, len(columns)))
	t.TextX = max(1, len(columns))*step + markIndent
	t.Width, t.Height = t.TextX+wordsWide, laneTop+len(list)*rowHeight
	numbers := make([]string, len(columns))
	for l, n := range columns {
		numbers[n] = fmt.Sprint(l.thread)
	}
	for n, label := range labels {
		t.Lanes = append(t.Lanes, htmlLane{X: n*step + markIndent, Top: laneTop - 8, Bottom: t.Height - 4, Label: numbers[n], Title: Clean(label)})
	}
	for i := range list {
		t.Marks = append(t.Marks, markOf(id, i, &list[i], columns[list[i].lane]*step+markIndent))
		if i > 0 {
			from, to := &t.Marks[i-1], &t.Marks[i]
			t.Steps = append(t.Steps, htmlArrow{from.X, from.Y, to.X, to.Y})
		}
	}
	t.Holds, t.Kept = holds(list, t.Marks)
	if failing {
		markBetween(list, t.Marks)
	}
	return t
}

func markOf(id string, i int, h *happening, x int) htmlMark {
	place := shortPlace(h.site)
	m := htmlMark{ID: fmt.Sprintf("%s-mark-%d", id, i+1), Target: fmt.Sprintf("%s-%d", id, i+1),
		X: x, Y: laneTop + i*rowHeight + rowHeight/2 - 6, Number: i + 1, Kind: h.kind,
		What: Clean(brief(h.what, labelRunes)), Where: Clean(brief(place, labelRunes)), Thread: Clean(brief(h.thread, labelRunes))}
	m.Title = cutSpan(Clean(fmt.Sprintf("%d: %s: %s, %s; %s", i+1, h.thread, h.what, place, lockWords(h.locks))))
	return m
}

// holds returns the locks held at the accesses. Two accesses with the same acquisition may still be
// in two critical sections: a lock that its last owner takes again makes no event (evidence.Lock).
func holds(list []happening, marks []htmlMark) (held, kept []htmlHold) {
	last := map[lockSince]int{}
	for i := range list {
		if len(list[i].locks) > 0 {
			held = append(held, htmlHold{X: marks[i].X, Y: marks[i].Y, Title: Clean(list[i].thread + " " + lockWords(list[i].locks))})
		}
		for _, l := range list[i].locks {
			key := lockSince{list[i].lane.thread, l}
			if n, seen := last[key]; seen && l.Taken != 0 {
				kept = append(kept, htmlHold{X: marks[i].X, Y: marks[n].Y, Bottom: marks[i].Y, Title: onlyLock(l)})
			}
			last[key] = i
		}
	}
	return held, kept
}

// markBetween marks the accesses that another thread or a signal's handler made between two of one
// thread.
func markBetween(list []happening, marks []htmlMark) {
	for i := 1; i+1 < len(list); i++ {
		own := list[i].lane
		before, after := list[i-1].lane, list[i+1].lane
		marks[i].Between = own != before && before == after
	}
}

// describe returns the full description of a happening. at is its line in the page's source.
func describe(id, run string, number int, h *happening, at string) htmlAccess {
	x := htmlAccess{ID: id, Title: htmlLineOf(append(say(strong, fmt.Sprintf("%s, %d: ", strings.ToLower(run), number)), h.sentence...))}
	if h.site != nil {
		where := htmlLineOf(siteLine(*h.site))
		if at != "" {
			where = append(where, htmlSpan{Text: " "}, htmlSpan{Text: "in the source", Link: at})
		}
		x.Facts = append(x.Facts, htmlFact{"where", where})
	}
	x.Facts = append(x.Facts, htmlFacts(h.facts)...)
	if h.stack != nil && len(h.stack.Frames) > 0 {
		x.Parts = append(x.Parts, htmlNode{Stack: htmlStackOf(say(strong, "Stack"), untilStart(*h.stack), true)})
	}
	return x
}

// htmlInterleaving shows an interleaving: the facts of the other formats, and the
// timelines. The failure ends the failing run.
func htmlInterleaving(id, prefix string, i *evidence.Interleaving, f *evidence.Failure, code *htmlCode) []htmlNode {
	words := *i
	words.Failing, words.Passing = nil, nil
	nodes := htmlNodes(interleaving(&words)[:1]) // the facts; the table after them is the picture here
	failing := append(ofInterleaving(i, i.Failing), ofFailure(f)...)
	return append(nodes, htmlNode{Timelines: timelinesOf(id, code, prefix, failing, ofInterleaving(i, i.Passing))})
}
