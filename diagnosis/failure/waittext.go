package failure

import (
	"fmt"
	"slices"
	"strings"

	"diagnose/evidence"
)

// WaitText is what a thread waits for, in words. The zero value is of a thread whose wait is not
// known.
type WaitText struct {
	// Kind is the kind of the object; empty: Object says what it is.
	Kind evidence.WaitKind
	// Object is the object: "0x4040 `a` held by thread 2". Note adds how it is odd.
	Object, Note string
}

// Known reports whether it is known what the thread waits for.
func (t WaitText) Known() bool { return t != WaitText{} }

// For is the predicate of so many threads that wait in this way: "waits for mutex 0x4040 `a` held
// by thread 2".
func (t WaitText) For(threads int) string {
	text := verb(threads) + t.what()
	if t.Note != "" {
		text += ", " + t.Note
	}
	return text
}

func (t WaitText) what() string {
	if t.Kind == "" {
		return t.Object
	}
	return string(t.Kind) + " " + t.Object
}

func verb(threads int) string {
	if threads > 1 {
		return "wait for "
	}
	return "waits for "
}

// JoinWaits says what so many threads wait for, which share a stack: one text if they wait for
// objects of one kind, otherwise one for each of the first few. It is empty if nothing is known.
func JoinWaits(list []WaitText, threads int) string {
	const most = 3
	var different []WaitText
	for _, t := range list {
		if t.Known() && !slices.Contains(different, t) {
			different = append(different, t)
		}
	}
	if text, ok := sameKind(different, threads, most); ok {
		return evidence.Say(text)
	}
	var parts []string
	for _, t := range different[:min(len(different), most)] {
		parts = append(parts, t.For(threads))
	}
	if n := len(different) - len(parts); n > 0 {
		parts = append(parts, fmt.Sprintf("and %d others", n))
	}
	return evidence.Say(strings.Join(parts, "; "))
}

// sameKind joins waits that differ only in their objects: "wait for condition variable 0x10 `a`,
// 0x50 `b` and 2 others".
func sameKind(list []WaitText, threads, most int) (string, bool) {
	if len(list) < 2 {
		return "", false
	}
	var objects []string
	for _, t := range list {
		if t.Kind == "" || t.Note != "" || t.Kind != list[0].Kind {
			return "", false
		}
		objects = append(objects, t.Object)
	}
	last := " and " + objects[len(objects)-1]
	if len(objects) > most {
		last = fmt.Sprintf(" and %d others", len(objects)-most)
	}
	return verb(threads) + string(list[0].Kind) + " " + strings.Join(objects[:min(most, len(objects)-1)], ", ") + last, true
}

// text is what a thread waits for. short leaves out the address of an object that has a name.
func (w *waiter) text(wt *wait, short bool) WaitText {
	out := WaitText{Kind: wt.what, Object: objectText(wt, short), Note: wt.note}
	owner := threadNumbered(w.threads, wt.owner)
	switch {
	case owner != nil && wt.what == evidence.WaitThreadExit:
		out.Kind, out.Object = "", fmt.Sprintf("the end of thread %d", owner.Ref.Number)
	case wt.joined != 0:
		out.Kind, out.Object = "", fmt.Sprintf("the end of the recording's thread %d", wt.joined)
	case wt.owner != 0:
		out.Object += " held by " + w.holderText(wt.owner)
	}
	for i, tid := range wt.readers {
		out.Object += [...]string{" held for reading by ", " and "}[min(i, 1)] + w.holderText(tid)
	}
	if wt.timed {
		out.Object += " for a limited time"
	}
	return out
}

func (w *waiter) holderText(tid uint64) string {
	if t := threadNumbered(w.threads, tid); t != nil {
		return fmt.Sprintf("thread %d", t.Ref.Number)
	}
	if ref, known := w.ended(tid); known {
		return fmt.Sprintf("thread %d", ref.Number)
	}
	return fmt.Sprintf("thread id %d", tid)
}

// objectText is an object's address and name. short leaves out the address if there is a name. A path is of one thread's frames only, so
// that it never stands alone.
func objectText(wt *wait, short bool) string {
	switch {
	case wt.name == "" && wt.path != "":
		return fmt.Sprintf("%v (`%s`)", wt.object, wt.path)
	case wt.name == "":
		return wt.object.String()
	case short:
		return "`" + wt.name + "`"
	}
	return fmt.Sprintf("%v `%s`", wt.object, wt.name)
}
