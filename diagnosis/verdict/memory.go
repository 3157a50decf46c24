package verdict

import (
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/watchtrace"
)

// memory goes back from the memory that the case names to who stored there.
func (w *work) memory() error {
	defer w.conclusion.exclude()
	if proved, err := w.usedFreed(); proved || err != nil {
		return err
	}
	if w.endless() {
		return nil
	}
	if w.tracedCauses.decidedBroken() || w.tracedCauses.mistyped() || w.tracedCauses.unpassed() {
		return nil
	}
	if damaged := w.victims.damaged(); len(damaged) > 0 {
		if err := w.back(damaged, beginning{}); err != nil || len(w.out.Causes) > 0 {
			return err
		}
	}
	if w.Case.Failure.Recursion != nil {
		return nil // no bad value made it fail
	}
	if w.tracedCauses.misled() {
		return nil
	}
	victims := w.victims.failing() // nothing says that the damage has a part in the failure
	var from beginning
	if len(victims) == 0 {
		if from = w.beginnings.first(); from.known() {
			victims = []victim{resultVictim(w.Case, w.Blame, from.result)}
		}
	}
	if len(victims) == 0 {
		if !w.tracedCauses.bounds() {
			w.tracedCauses.alone()
		}
		return nil
	}
	return w.back(victims, from)
}

// usedFreed looks at the freed objects that the failing code used. Only an experiment shows
// that such a use explains the failure. A cause that no experiment decides is kept aside, and
// the search continues.
func (w *work) usedFreed() (proved bool, err error) {
	uses := w.victims.uses()
	if len(uses) == 0 {
		return false, nil
	}
	err = w.back(uses, beginning{})
	for _, c := range w.out.Causes {
		switch {
		case c.Proof == evidence.Proved:
			proved = true
		case c.Open == evidence.OpenApart:
			w.conclusion.apart = append(w.conclusion.apart, c)
		default:
			c.Proof = evidence.Inferred // that the use has to do with the failure
			w.conclusion.asides = append(w.conclusion.asides, c)
		}
	}
	w.out.Causes = slices.DeleteFunc(w.out.Causes, func(c evidence.Cause) bool { return c.Proof != evidence.Proved })
	return proved, err
}

// back makes the chains of victims, and keeps the causes that they end at.
func (w *work) back(victims []victim, from beginning) error {
	const most = 4 // one defect may damage any number of objects
	for i, v := range victims {
		if i == most {
			break
		}
		if w.progress.stopsBefore("the way back from " + v.name) {
			break
		}
		found := w.tracedCauses.follow(&v)
		if found != nil && found.alone() {
			if !w.conclusion.known(found.cause) {
				w.out.Causes = append(w.out.Causes, *found.cause)
			}
			continue
		}
		if found == nil {
			if cause := w.tracedCauses.unmapped(&v); cause != nil {
				w.out.Causes = append(w.out.Causes, *cause)
				continue
			}
			if earlier := w.tracedCauses.beforeTrace(&v); earlier != nil {
				v = *earlier
			}
		}
		c, err := w.search(v, from, found)
		switch {
		case c == nil && err == nil:
			w.tracedCauses.withoutFree(found.cause, found.way)
			w.out.Causes = append(w.out.Causes, *found.cause)
			continue
		case err == errPart:
			w.progress.leftOut("the way back from " + v.name)
			c.end.text, c.end.open = err.Error(), evidence.OpenTime
		case err != nil && w.progress.stopsBefore("the way back from "+v.name):
			c.end.text, c.end.open = w.progress.ended().Error(), evidence.OpenTime
		case err != nil:
			return err
		}
		if c.overtaken != nil && !c.overtaken.damaged() {
			w.earlyReads.note(c.overtaken.start, c.overtaken.size, c.overtaken.name)
		}
		w.decidedBefore(c)
		cause := c.account().cause()
		if cause == nil {
			cause = c.account().endOfTree()
		}
		if cause != nil && found == nil {
			lead := w.exact.instead(&v, cause)
			if c.otherDivisor() {
				lead = w.exact.computedAt(&v)
			}
			if lead != nil {
				w.out.Causes = append(w.out.Causes, *lead)
				continue
			}
			w.tracedCauses.chosen(&v, cause)
		}
		if found != nil && (cause == nil || c.printed() && found.at(cause)) { // a text that is not printed proves nothing about its number
			if cause = nil; !w.conclusion.known(found.cause) {
				w.tracedCauses.withoutFree(found.cause, found.way)
				w.out.Causes = append(w.out.Causes, *found.cause)
			}
		}
		if cause != nil && err == errPart { // what the way is through so far is no beginning; its experiments would use up what is left
			if !w.conclusion.known(cause) {
				w.out.Causes = append(w.out.Causes, *cause)
			}
			continue
		}
		if cause != nil && !w.conclusion.known(cause) {
			if found != nil && found.at(cause) && cause.Open != evidence.OpenEmpty && cause.Open != evidence.OpenFolded && cause.Open != evidence.OpenInput {
				cause.Open, c.traced = "", true
			}
			open := cause.Open
			if len(w.Passing) > 0 && open != evidence.OpenFolded && !c.decision(cause) && !c.handedOn() {
				cause.Open = "" // the difference from a run that passes tells that the value is bad there
			}
			(&chainExperiments{c}).prove(cause)
			if v.way != nil && v.way.Lost {
				keepLost(cause)
			}
			if cause.Proof != evidence.Proved {
				cause.Open = open
			}
			if found != nil {
				if cause = found.weigh(cause); cause == found.cause && w.conclusion.known(cause) {
					continue
				}
			}
			if found != nil && cause == found.cause {
				w.tracedCauses.withoutFree(cause, found.way)
			}
			if v.use && refuted(cause) {
				if v.way == nil {
					continue // the case has it as a finding
				}
				cause.Open = evidence.OpenApart
			}
			broke := found != nil && cause == found.cause && found.way.Broke() // whatever the memory there held
			if contradicted(cause) && !broke {
				if found != nil && found.cause.Open != "" {
					w.out.Causes = append(w.out.Causes, *found.cause) // where the value was, a trace has shown
					continue
				}
				w.conclusion.contradicted = append(w.conclusion.contradicted, *cause)
				continue
			}
			w.out.Causes = append(w.out.Causes, *cause)
		}
	}
	return nil
}

// keepLost has the experiments decide nothing in which the memory of a cause was not freed, and the run failed all the same: stores were made to it after
// it had been copied. Those are lost whether the old copy is freed or not.
func keepLost(cause *evidence.Cause) {
	for i := range cause.Experiments {
		if e := &cause.Experiments[i]; !e.Control && !e.Expect && e.Undecided == "" && e.Failed > 0 {
			e.Undecided = "what was stored there after the memory had been copied is not in the copy, whether the memory was freed or not"
		}
	}
}

// earlyReads is memory of which bad values were read before something was stored there.
type earlyReads struct {
	process *image.Process
	objects func(evidence.Addr) *evidence.HeapObject
	// overtaken is memory to which something was stored only after that; unset had nothing stored in it when it was read.
	overtaken, unset []watchtrace.Target
}

// note notes memory to which another thread stored something only after a bad value had been read there. Without a name, the
// memory's own is taken.
func (e *earlyReads) note(addr evidence.Addr, size int, name string) {
	e.overtaken = append(e.overtaken, targetsAt(e.process, e.objects, addr, size, name)...)
}

// targetsAt is memory to watch. What the program calls it comes before the name that it is given. An access of optimised code may be to
// several members at once: each is one of them.
func targetsAt(p *image.Process, objects func(evidence.Addr) *evidence.HeapObject, addr evidence.Addr, size int, name string) []watchtrace.Target {
	around := watchtrace.Around(p, addr, size)
	around = slices.DeleteFunc(around, func(t watchtrace.Target) bool { return t.Addr >= addr+evidence.Addr(size) })
	t := watchtrace.Target{Name: name, Addr: addr, Size: size}
	switch {
	case len(around) > 1:
		return around
	case len(around) == 1 && around[0].Addr == addr:
		t.Name, t.Type = around[0].Name, around[0].Type
	case name == "":
		t.Name = nameOf(p, objects, addr)
	}
	return []watchtrace.Target{t}
}

// refuted reports whether the run failed as it did without what the cause says, in
// each replay of an experiment.
func refuted(cause *evidence.Cause) bool {
	return cause.Proof != evidence.Proved && slices.ContainsFunc(cause.Experiments, func(e evidence.Experiment) bool {
		return !e.Expect && e.Undecided == "" && e.Runs > 0 && e.Failed == e.Runs
	})
}

// contradicted reports whether every experiment on a cause speaks against it: the run failed as it
// did, each time, and the failing instruction got the very value that it had. Where the value was
// another bad one, the change did something, and decides nothing.
func contradicted(cause *evidence.Cause) bool {
	changes := 0
	for i := range cause.Experiments {
		e := &cause.Experiments[i]
		if e.Control {
			if !e.Agrees() {
				return false
			}
			continue
		}
		c := e.Check
		if changes++; e.Expect || e.Undecided != "" || e.Runs == 0 || e.Failed != e.Runs || c == nil || c.Before.Value == "" || c.After.Value != c.Before.Value {
			return false
		}
	}
	return changes > 0
}

// exclude tells of the causes that the experiments contradict, unless the same line is a cause after all, by other bytes that it stored.
func (k *conclusion) exclude() {
	for i := range k.contradicted {
		c := &k.contradicted[i]
		if !slices.ContainsFunc(k.out.Causes, func(o evidence.Cause) bool {
			return o.Site != nil && c.Site != nil && o.Site.File == c.Site.File && o.Site.Line == c.Site.Line
		}) {
			k.out.Excluded = append(k.out.Excluded, evidence.Fact{Name: c.Variable,
				Text: c.Summary + ": without that the failing instruction gets the same value, and fails"})
		}
	}
}

// known reports whether the same code is the cause of other damage already.
func (k *conclusion) known(cause *evidence.Cause) bool {
	return cause.Site != nil && slices.ContainsFunc(k.out.Causes, func(c evidence.Cause) bool {
		return c.Kind == cause.Kind && c.Site != nil && c.Site.PC == cause.Site.PC
	})
}
