package verdict

import (
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/watchtrace"
)

const (
	mostLookedAt = 4  // as many as one pass can watch
	mostStores   = 16 // places that are visited
)

// stray is for a program that gave up because of a wrong result, which names no
// address: among the stores to the variables that it looked at, it searches for one
// outside of what its code meant.
func (w *work) stray() error {
	victims := lookedAt(w.Case, w.Process)
	if len(victims) == 0 || slices.ContainsFunc(w.out.Causes, func(c evidence.Cause) bool { return c.Proof == evidence.Proved }) {
		return nil
	}
	var targets []watchtrace.Target
	for i := range victims {
		targets = append(targets, victims[i].target())
	}
	t, err := w.tracer.run("stray stores", w.rec, targets)
	if err != nil {
		return err
	}
	for i := range victims {
		v := &victims[i]
		for _, index := range v.places(t.log, w.rec.Manifest.Outcome.Thread) {
			if w.progress.stopsBefore("stores to " + v.name) {
				return nil
			}
			c := &chain{work: w, victim: *v}
			l, err := c.visits.look(*v, t.plan, t.log, index)
			if err != nil {
				return err
			}
			if l.bounds == "" {
				continue
			}
			c.links = []link{*l}
			cause := c.account().cause()
			(&chainExperiments{c}).prove(cause)
			w.out.Causes = append(w.out.Causes, *cause)
			return nil
		}
	}
	w.out.Excluded = append(w.out.Excluded, evidence.Fact{Name: "stray stores",
		Text: "no store to " + namesOf(victims) + " is known to lie outside of what its code meant"})
	return nil
}

func namesOf(victims []victim) string {
	var names []string
	for i := range victims {
		names = append(names, victims[i].name)
	}
	return strings.Join(names, ", ")
}

// places are the last stores of each instruction to the victim, the nearest to
// the failing thread's last look at it first.
func (v *victim) places(log *evidence.AccessLog, thread uint32) []int {
	var list []int
	seen := map[evidence.Addr]bool{}
	for i := v.readBy(log, len(log.Accesses), thread) - 1; i >= 0 && len(list) < mostStores; i-- {
		a := &log.Accesses[i]
		if !writesMemory(a.Kind) || a.By != evidence.ByProgram || seen[a.PC] || !v.concerns(log, a) || !v.changes(log, a) {
			continue
		}
		seen[a.PC] = true
		list = append(list, i)
	}
	return list
}

// endedItself reports that the program itself ended the process, for a reason of its own.
func endedItself(c *evidence.Case) bool {
	switch c.Failure.Kind {
	case evidence.Abort, evidence.AssertionFailure, evidence.ExitStatus, evidence.DeclaredFailure, evidence.CxxTerminate, evidence.RustPanic:
		return true
	}
	return false
}

// lookedAt are the variables of one word that the failing code read.
func lookedAt(c *evidence.Case, p *image.Process) []victim {
	if c.Scan == nil || !endedItself(c) {
		return nil
	}
	var list []victim
	for i := range c.Scan.Suspects {
		s := &c.Scan.Suspects[i]
		if s.Size <= 0 || s.Size > wordSize || s.Proof == evidence.Inferred || stream[s.Name] || s.Access == evidence.Write || len(list) == mostLookedAt {
			continue
		}
		v := victim{kind: evidence.CauseOverwritten, name: s.Name, typ: s.Type, start: s.Address, size: s.Size}
		if value, ok := wordAt(p, v.start, v.size); ok {
			v.value = &value
		}
		list = append(list, v)
	}
	return list
}
