package verdict

import (
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
)

// mostEarlier bounds how many values of other calls are tried.
const mostEarlier = 2

// replaced are the experiments that give a call another result: one that it had before,
// or in a run that passed, or, where it was a pointer there, the address of readable zeros.
func (ce *chainExperiments) replaced(r *returned) []change {
	if r.back == 0 {
		return nil
	}
	a := r.when
	a.pc = r.back
	var earlier []uint64
	a.is = func(regs *image.Registers) bool {
		v, known := regs.Get(image.RAX)
		if regs.SP() == r.sp && known && v == r.value {
			return true
		}
		if known && ce.couldReplace(r.value, v) && !slices.Contains(earlier, v) {
			earlier = append(earlier, v)
		}
		return false
	}
	at, err := ce.chain.moments.last(arrivals{pc: a.pc, thread: a.thread, ordinal: a.ordinal, events: 2 * farEvents, before: a.before, is: a.is})
	if err != nil {
		ce.chain.progress.failedPart(err)
		return nil
	}
	if at.Count == 0 {
		return nil
	}
	slices.Reverse(earlier)
	var list []change
	add := func(what string, value uint64) {
		// What follows may ask the same again, until there is another event.
		hook := replay.Hook{At: at, Every: true, Do: func(s *replay.Stopped) error {
			regs, err := s.Registers()
			if err != nil {
				return err
			}
			if now, _ := regs.Get(image.RAX); now != r.value {
				return nil
			}
			return s.SetRegister(image.RAX, value)
		}}
		list = append(list, change{what: what, options: replay.FreeRequest{Common: replay.Common{Hooks: []replay.Hook{hook}}}})
	}
	for _, v := range ce.otherResults(r, at) {
		if !slices.Contains(earlier, v) {
			earlier = append(earlier, v)
		}
	}
	for _, v := range earlier[:min(len(earlier), mostEarlier)] {
		add(fmt.Sprintf("%s made to return %s, as it did before", r.function, valueText(v)), v)
	}
	passing := ce.passingResults(r.back, r.value)
	for _, v := range passing {
		add(fmt.Sprintf("%s made to return %s, as in a run that passed", r.function, valueText(v)), v)
	}
	// That it was the call's to return another one, only a run that passes shows.
	if r.value != 0 || ce.chain.victim.size != wordSize || r.opaque || len(passing) == 0 {
		return list
	}
	if calledValue(ce.chain.Process) {
		if value, ok := nearReturn(ce.chain.Process); ok {
			add(r.function+" made to return the address of a function that returns at once", uint64(value))
		}
	} else if zeros, ok := readableZeros(ce.chain.Process); ok {
		add(r.function+" made to return the address of readable zeros", uint64(zeros))
	}
	return list
}

// otherResults are what calls of the function from elsewhere returned before.
func (ce *chainExperiments) otherResults(r *returned, at evidence.Moment) []uint64 {
	var found []uint64
	for _, pc := range r.returns[:min(len(r.returns), mostReturns)] {
		_, err := ce.chain.moments.last(arrivals{pc: pc, thread: r.when.thread, ordinal: at.Ordinal, events: farEvents, before: r.when.before, is: func(regs *image.Registers) bool {
			if v, known := regs.Get(image.RAX); known && ce.couldReplace(r.value, v) && !slices.Contains(found, v) && len(found) < mostEarlier {
				found = append(found, v)
			}
			return false
		}})
		if err != nil {
			ce.chain.progress.failedPart(err)
		}
	}
	return found
}

// mostReturns bounds the return instructions of a function that are looked at.
const mostReturns = 4

// couldReplace reports whether a value may stand for another one, which is bad: instead of a
// null pointer nothing near to one does.
func (ce *chainExperiments) couldReplace(bad, v uint64) bool {
	const null = 4096
	if bad == 0 && ce.chain.victim.size == wordSize {
		return v >= null && v < userSpace
	}
	return uint32(v) != uint32(bad)
}

// passingEvents is how many of a passing run's events are looked behind.
const passingEvents = 256

// passingResults are what the call that comes back to a place returned in passing runs.
func (ce *chainExperiments) passingResults(back evidence.Addr, bad uint64) []uint64 {
	var found []uint64
	for _, rec := range ce.chain.Passing {
		thread := ce.chain.rec.Manifest.Outcome.Thread
		schedule, err := rec.Log.Schedule()
		if err != nil && len(schedule) == 0 {
			continue
		}
		_, err = lastArrival(ce.chain.progress.ctx, rec, ce.chain.Image, arrivals{pc: back, thread: thread, ordinal: schedule.Events()[thread], events: passingEvents, is: func(regs *image.Registers) bool {
			if v, known := regs.Get(image.RAX); known && ce.couldReplace(bad, v) && !slices.Contains(found, v) && len(found) < mostEarlier {
				found = append(found, v)
			}
			return false
		}})
		if err != nil {
			ce.chain.progress.failedPart(err)
		}
		if len(found) > 0 {
			break
		}
	}
	return found
}
