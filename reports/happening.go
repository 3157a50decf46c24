package reports

import (
	"fmt"
	"path"

	"diagnose/evidence"
)

// happening is an event that a timeline marks: an access, a call of the heap, the failure.
type happening struct {
	kind happeningKind
	lane lane
	// thread is the lane's label.
	thread string
	// what labels the mark, sentence describes the happening.
	what     string
	sentence line
	site     *evidence.Site
	facts    facts
	stack    *evidence.Stack
	locks    []evidence.Lock
}

// happeningKind decides how a mark is drawn; it is a class of report.css.
type happeningKind string

const (
	happensRead      happeningKind = "read"
	happensWrite     happeningKind = "write"
	happensChange    happeningKind = "change"
	happensAllocated happeningKind = "allocated"
	happensFreed     happeningKind = "freed"
	happensStep      happeningKind = "step"
	happensFailure   happeningKind = "failure"
)

// lane is the subject of one lane of a timeline: a thread, or the handler of a signal that
// interrupted it.
type lane struct {
	thread  int
	handler string
}

// laneOfThread uses the recording's number of the thread, which accesses have.
func laneOfThread(t *evidence.ThreadRef) lane {
	if t.Recorded != 0 {
		return lane{thread: t.Recorded}
	}
	return lane{thread: t.Number}
}

var accessKinds = map[evidence.AccessKind]happeningKind{evidence.Read: happensRead, evidence.Write: happensWrite, evidence.ReadWrite: happensChange}

// ofAccess is an access; words say what it did.
func ofAccess(a *evidence.SeenAccess, words func(*evidence.SeenAccess) string) happening {
	h := happening{kind: accessKinds[a.Kind], lane: lane{a.Thread.Number, a.Handler}, thread: a.Thread.Label(), what: words(a),
		sentence: say(plain, accessWords(a)), site: a.Site, locks: a.Locks, stack: &a.Stack}
	if h.kind == "" {
		h.kind = happensStep
	}
	if a.Handler != "" {
		h.thread = fmt.Sprintf("%s in thread %d", a.Handler, a.Thread.Number)
	}
	if !a.Unreached {
		h.facts = facts{{"locks", say(plain, lockWords(a.Locks))}, {"moment", say(faint, a.Moment.String())}}
	}
	return h
}

// ofInterleaving returns the accesses of one run of an interleaving.
func ofInterleaving(i *evidence.Interleaving, run []evidence.SeenAccess) []happening {
	words := wordsFor(i)
	list := make([]happening, len(run))
	for n := range run {
		list[n] = ofAccess(&run[n], words)
	}
	return list
}

// ofFailure returns the failure as a happening; nil if no thread failed.
func ofFailure(f *evidence.Failure) []happening {
	if f.Thread == nil {
		return nil
	}
	what := "fails"
	switch {
	case f.Signal != nil:
		what += ": " + f.Signal.Name
	case f.Status != 0:
		what += fmt.Sprintf(": exit status %d", f.Status)
	}
	return []happening{{kind: happensFailure, lane: laneOfThread(f.Thread), thread: f.Thread.Label(), what: what,
		sentence: say(plain, "the failure: "+f.Sentence).and(faint, proofMark(f.Proof)), site: f.Site}}
}

// ofStory returns the story of a cause in time order, between the allocation of its object and the
// failure.
func ofStory(x *evidence.Cause, f *evidence.Failure) []happening {
	list := beforeStory(x)
	at, thread := storyThread(x.Story, f)
	for i := 0; i < len(x.Story); i++ {
		s := &x.Story[i]
		h := ofStep(s, x.Object)
		if s.Access != nil {
			at, thread = h.lane, h.thread
		}
		h.lane, h.thread = at, thread
		list = append(list, h)
		// Of a loop's stores the first and the last are shown.
		if n := alike(x.Story[i:]); n > 3 {
			last := &list[len(list)-1]
			last.facts = append(last.facts, fact{"and then", say(plain, fmt.Sprintf("%d more by the same instruction, of which the last is shown", n-1))})
			i += n - 2
		}
	}
	failed := ofFailure(f)
	if last := len(list) - 1; last >= 0 && len(failed) > 0 && list[last].kind == happensStep && samePlace(list[last].site, f.Site) {
		list[last].kind, list[last].lane, list[last].thread = happensFailure, failed[0].lane, failed[0].thread
		return list
	}
	return append(list, failed...)
}

// storyThread returns the lane of a step without an access: that of the accesses before it, or else
// of the first access after it.
func storyThread(steps []evidence.CauseStep, f *evidence.Failure) (lane, string) {
	for i := range steps {
		if a := steps[i].Access; a != nil {
			return lane{a.Thread.Number, a.Handler}, a.Thread.Label()
		}
	}
	if f.Thread != nil {
		return laneOfThread(f.Thread), f.Thread.Label()
	}
	return lane{thread: 1}, "thread 1"
}

// ofStep is a step of a story. An access where its object was allocated or freed is drawn as that
// call.
func ofStep(s *evidence.CauseStep, o *evidence.HeapObject) happening {
	h := happening{kind: happensStep, what: s.Text, site: s.Site}
	if a := s.Access; a != nil {
		h = ofAccess(a, storyWords)
		h.facts = facts{{"access", say(plain, accessWords(a))}, {"moment", say(faint, a.Moment.String())}}
		if len(a.Locks) > 0 {
			h.facts = append(h.facts, fact{"locks", say(plain, lockWords(a.Locks))})
		}
		if o != nil && (a.ByHeap || a.Call != "") && o.Freed != nil && samePlace(a.Site, o.Freed.Site) {
			h.kind, h.what = happensFreed, "frees the object"
		}
	}
	h.sentence = say(plain, s.Text).and(faint, proofMark(s.Proof))
	return h
}

// storyWords describes an access with its variable, as a story may have several.
func storyWords(a *evidence.SeenAccess) string {
	if value := a.New; a.Kind != evidence.Read && value != "" {
		return a.Variable + " \u2190 " + value
	}
	return accessVerb(a) + " " + a.Variable
}

// beforeStory returns the calls before the beginning of a story that does not contain them: every
// use of an object follows its allocation, and a use after free follows its free.
func beforeStory(x *evidence.Cause) []happening {
	o := x.Object
	if o == nil {
		return nil
	}
	var list []happening
	if h := ofHeapCall(happensAllocated, "allocates the object", o.Allocated); h != nil && !tells(x.Story, h.site) {
		list = append(list, *h)
	}
	if x.Kind != evidence.CauseUseAfterFree && x.Kind != evidence.CauseDoubleFree {
		return list
	}
	if h := ofHeapCall(happensFreed, "frees the object", o.Freed); h != nil && !tells(x.Story, h.site) {
		list = append(list, *h)
	}
	return list
}

// ofHeapCall is a call of malloc or free; nil if its thread or its place is not
// known.
func ofHeapCall(kind happeningKind, what string, c *evidence.HeapCall) *happening {
	if c == nil || c.Site == nil || c.Thread == nil || c.Thread.Ref == nil {
		return nil
	}
	return &happening{kind: kind, lane: laneOfThread(c.Thread.Ref), thread: c.Thread.Label(), what: what,
		sentence: say(plain, c.Thread.Label()+" "+what).and(faint, proofMark(evidence.FromCore)), site: c.Site, stack: &c.Stack}
}

func tells(steps []evidence.CauseStep, site *evidence.Site) bool {
	for i := range steps {
		if samePlace(steps[i].Site, site) || steps[i].Access != nil && samePlace(steps[i].Access.Site, site) {
			return true
		}
	}
	return false
}

func samePlace(a, b *evidence.Site) bool {
	return a != nil && b != nil && a.Function == b.Function && a.File == b.File && a.Line == b.Line && (a.Line != 0 || a.PC == b.PC)
}

// wordsFor returns the labels of the marks of an interleaving: values, or variables if there are
// several.
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

// valueWords describes an access in few words, for a picture.
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

// shortPlace is the function and the line of a place, if they are known.
func shortPlace(s *evidence.Site) string {
	if s == nil {
		return ""
	}
	text := functionOf(*s)
	switch {
	case s.File != "":
		text += fmt.Sprintf(", %s:%d", path.Base(s.File), s.Line)
	case s.Module != "":
		text += fmt.Sprintf(", %s+%v", path.Base(s.Module), s.ModuleOffset)
	}
	return text
}

// lockSince is a lock that a thread acquired. Taken distinguishes its acquisitions.
type lockSince struct {
	thread int
	lock   evidence.Lock
}

// onlyLock says that no other thread had a lock between two accesses.
func onlyLock(l evidence.Lock) string {
	return Clean("no other thread had " + lockName(l) + " in between")
}
