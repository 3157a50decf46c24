package verdict

import (
	"diagnose/evidence"
	"diagnose/patterns"
)

// passesBefore reports whether a thread passed the failing check before the write that must come first, if an order of a read before a
// write is the cause. The failure then needs no such write to stay away: with the failing thread kept back until it, other things happen
// as well, up to the end of all work. The checks that count read the words that the failing one did. A check that passed without a look
// at the variable needs the write no more.
func (r *race) passesBefore(c *patterns.Candidate) bool {
	log := r.failing[c.Run].log
	write, variable, ok := r.comesLate(c)
	if !ok {
		return false
	}
	checks := r.checkReads(c.Run)
	if checks.passedBefore(log, write, variable, r.failing[c.Run].rec.Manifest.Outcome.Thread) {
		return true
	}
	for i := range r.passing {
		if log := r.passing[i].log; checks.passedBefore(log, write, variable, 0) || checks.passedWithout(log, variable) {
			return true
		}
	}
	return false
}

// comesLate is the instruction of the write, and its variable, of an order of a read before a write.
func (r *race) comesLate(c *patterns.Candidate) (pc evidence.Addr, variable string, ok bool) {
	var write *evidence.Access
	log := r.failing[c.Run].log
	switch {
	case len(c.Variables) != 1:
		return 0, "", false
	case c.Never && len(c.Passing) > 0:
		write = &r.passing[c.PassingRun].log.Accesses[c.Passing[0]]
	case !c.Never && len(c.Accesses) == 2 && log.Accesses[c.Accesses[0]].Kind == evidence.CodeRead:
		write = &log.Accesses[c.Accesses[1]]
	default:
		return 0, "", false
	}
	return write.PC, c.Variables[0], write.Kind != evidence.CodeRead
}

// checkRead is a read of the failing check: its instruction, and the word.
type checkRead struct {
	pc       evidence.Addr
	variable string
	offset   uint32
}

func checkReadOf(log *evidence.AccessLog, a *evidence.Access) checkRead {
	return checkRead{a.PC, log.Variables[a.Variable].Name, a.Offset}
}

// checkReads are the reads of the failing check. There are none where it is not known what the check reads.
type checkReads map[checkRead]bool

// checkReads are those of a failing run.
func (r *race) checkReads(run int) checkReads {
	log, failing := r.failing[run].log, r.failing[run].rec.Manifest.Outcome.Thread
	names, site := r.checked(log), r.Case.Failure.Site
	reads := checkReads{}
	for i := range log.Accesses {
		a := &log.Accesses[i]
		if a.Thread != failing || a.Kind == evidence.CodeWrite || !names[log.Variables[a.Variable].Name] {
			continue
		}
		own := &log.Contexts[a.Context].Site
		loads := r.Blame != nil && r.Blame.Cell != nil && a.PC == r.Blame.Loaded.PC
		tests := gaveUp[r.Case.Failure.Kind] && site != nil && own.File == site.File && own.Line == site.Line
		if loads || tests {
			reads[checkReadOf(log, a)] = true
		}
	}
	return reads
}

// passedBefore reports whether a log has such a read before the instruction first wrote the variable, of a check that passed. failing is
// the thread that failed; 0: none did. In a run that failed a thread is known to have passed if it comes there once more, and another
// one if it has made an event since: it may have been about to fail as well.
func (c checkReads) passedBefore(log *evidence.AccessLog, write evidence.Addr, variable string, failing uint32) bool {
	last := map[uint32]uint64{} // the event before the last such read, by thread
	for i := range log.Accesses {
		a := &log.Accesses[i]
		if a.PC == write && log.Variables[a.Variable].Name == variable {
			break
		}
		before, came := last[a.Thread]
		if came && a.Thread != failing && a.Ordinal > before {
			return true
		}
		if c[checkReadOf(log, a)] {
			if failing == 0 || came && a.Ordinal > before {
				return true
			}
			last[a.Thread] = a.Ordinal
		}
	}
	return false
}

// passedWithout reports whether the failing check reads a variable, and passed in the log by its other reads alone.
func (c checkReads) passedWithout(log *evidence.AccessLog, variable string) bool {
	reads := false
	for read := range c {
		reads = reads || read.variable == variable
	}
	if !reads {
		return false
	}
	checking := map[uint32]bool{} // threads whose last access was a read of the check
	for i := range log.Accesses {
		a := &log.Accesses[i]
		read := checkReadOf(log, a)
		if c[read] && read.variable == variable {
			checking[a.Thread] = false
			continue
		}
		if checking[a.Thread] && !c[read] {
			return true
		}
		checking[a.Thread] = c[read]
	}
	return false
}
