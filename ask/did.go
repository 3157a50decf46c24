package ask

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/probe"
	"diagnose/replay/record/eventlog"
	"diagnose/watchtrace"
)

// did answers FormDid: the events of the log, and the calls of the program's functions by a replay.
func (a *asker) did() error {
	thread, err := a.threadNamed()
	if err != nil {
		return err
	}
	deeds, err := a.events(thread)
	if err != nil {
		return err
	}
	calls, failure := a.functions(thread)
	if failure != nil && calls == nil {
		var wrong *probe.Error
		if !errors.As(failure, &wrong) {
			return failure
		}
		a.answer.Coverage.gap(Gap{Kind: GapFunctions, Text: wrong.Problem})
		failure = nil
	}
	// A call after an event has the event's number.
	deeds = append(deeds, calls...)
	slices.SortStableFunc(deeds, func(x, y Deed) int { return cmp.Compare(x.Moment.Ordinal, y.Moment.Ordinal) })
	if a.answer.More && len(calls) > 0 {
		deeds = until(deeds, &calls[len(calls)-1])
	}
	if n := len(deeds); a.q.Most > 0 && n > a.q.Most {
		a.answer.LeftOut, deeds = uint64(n-a.q.Most), deeds[:a.q.Most]
	}
	a.answer.Did = deeds
	a.answer.Coverage.gap(Gap{Kind: GapLibraries})
	return failure
}

// until leaves out what came after the last call that the replay saw.
func until(deeds []Deed, last *Deed) []Deed {
	i := slices.IndexFunc(deeds, func(d Deed) bool { return d.Moment.Ordinal > last.Moment.Ordinal })
	if i < 0 {
		return deeds
	}
	return deeds[:i]
}

// threadNamed returns the thread that is asked about, by its number, or by the function that it was started with.
func (a *asker) threadNamed() (uint32, error) {
	refs := a.log.refs(a.code())
	var names []string
	var found []uint32
	for _, t := range refs {
		if strconv.Itoa(t.Number) == a.q.Asked {
			return uint32(t.Number), nil
		}
		if t.Start == a.q.Asked {
			found = append(found, uint32(t.Number))
		}
		names = append(names, t.Label())
	}
	const most = 8
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return 0, &Error{Asked: a.q.Asked, Problem: fmt.Sprintf("%d threads were started with it; give a number, of the first %d", len(found), found[0])}
	}
	return 0, &Error{Asked: a.q.Asked, Problem: "there is no such thread", Nearest: names[:min(len(names), most)]}
}

// events returns what the log has of the thread.
func (a *asker) events(thread uint32) ([]Deed, error) {
	a.progress(Progress{Stage: StageResolve})
	var list []Deed
	position, again := uint64(0), uint64(0)
	for e, err := range a.rec.Log.Ordered() {
		var cut *eventlog.CutError
		if errors.As(err, &cut) {
			break
		}
		if err != nil {
			return nil, err
		}
		position++
		if e.Thread != thread {
			continue
		}
		again += e.Skipped
		if !a.asksOf(position, e) {
			again = 0
			continue
		}
		if d, shown := a.deedOf(e); shown {
			d.Instant, d.Again = instant(evidence.Moment{Thread: e.Thread, Ordinal: e.Ordinal}, position), again
			list, again = append(list, d), 0
		}
	}
	return list, nil
}

// asksOf reports whether an event is in the span. A moment is right after its event, or later.
func (a *asker) asksOf(position uint64, e *eventlog.Event) bool {
	if from := a.q.From; from != nil && (position < a.log.from || position == a.log.from && from.PC != 0) {
		return false
	}
	until := a.q.Until
	return until == nil || position < a.log.until || position == a.log.until && until.PC != 0
}

// deedOf describes an event. Those that the recorder makes for itself are not shown.
func (a *asker) deedOf(e *eventlog.Event) (Deed, bool) {
	d := Deed{Thread: e.Thread, Name: e.Kind.String(), Waited: e.Flags&eventlog.FlagArrived != 0, Site: a.siteOf(e)}
	result := e.Result
	switch e.Kind {
	case eventlog.KindSyscall:
		d.Kind, d.Name, d.Result = DeedSyscall, e.CallText(), &result
	case eventlog.KindMutex, eventlog.KindRWLock, eventlog.KindSpin, eventlog.KindCond, eventlog.KindSem, eventlog.KindBarrier, eventlog.KindOnce, eventlog.KindGuard:
		d.Kind, d.Object = DeedLock, a.lockName(evidence.Addr(e.Object))
		if len(e.Args) > 0 {
			d.Name += " " + eventlog.Sync(e.Args[0]).String()
		}
		if result != 0 {
			d.Result = &result
		}
	case eventlog.KindStart, eventlog.KindExit, eventlog.KindCreate, eventlog.KindJoin, eventlog.KindDetach, eventlog.KindCancel:
		d.Kind = DeedThread
		if uint32(e.Object) != e.Thread {
			d.Object = "thread " + strconv.FormatUint(e.Object, 10)
		}
		if result != 0 {
			d.Result = &result
		}
	case eventlog.KindFork, eventlog.KindExec:
		d.Kind, d.Result = DeedThread, &result
	case eventlog.KindSignal:
		d.Kind, d.Name = DeedSignal, "handles "+unix.SignalName(unix.Signal(e.Object))
	case eventlog.KindSignalEnd:
		d.Kind, d.Name = DeedSignal, "has handled "+unix.SignalName(unix.Signal(e.Object))
	default:
		return d, false
	}
	d.Name = strings.TrimSpace(d.Name)
	return d, true
}

// siteOf is where the program made the event.
func (a *asker) siteOf(e *eventlog.Event) evidence.Site {
	p := a.code()
	if p == nil || e.Site == 0 {
		return evidence.Site{PC: e.Site}
	}
	calls := p.Symbolize(e.Site, image.ReturnAddress)
	for i := range calls {
		if !image.LibraryCode(&calls[i].Site) {
			return calls[i].Site
		}
	}
	return calls[0].Site
}

func (a *asker) lockName(addr evidence.Addr) string {
	if p := a.code(); p != nil {
		if name := watchtrace.LockName(p, addr); name != "" {
			return name
		}
	}
	return addr.String()
}

// functions returns the calls of the program's functions that the thread made; nil with an error if they cannot be observed.
func (a *asker) functions(thread uint32) ([]Deed, error) {
	log, err := a.probed(probe.Question{Every: true, Thread: thread, Most: a.q.Most})
	if log == nil {
		return nil, err
	}
	list := []Deed{}
	for i := range log.Rows {
		row := &log.Rows[i]
		site := log.Places[row.Place].Site
		list = append(list, Deed{Instant: instant(row.Moment, row.Position), Thread: thread, Kind: DeedFunction, Name: callText(&site, row.Values), Site: site})
	}
	return list, err
}

// callText is a call with its arguments.
func callText(site *evidence.Site, arguments []evidence.Variable) string {
	name, _, _ := strings.Cut(site.Function, "(")
	var list []string
	for i := range arguments {
		text := arguments[i].Value.Text
		if text == "" {
			text = "<" + arguments[i].Value.Unavailable + ">"
		}
		list = append(list, text)
	}
	return fmt.Sprintf("%s(%s)", name, strings.Join(list, ", "))
}
