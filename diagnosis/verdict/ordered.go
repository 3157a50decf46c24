package verdict

import (
	"encoding/binary"
	"slices"

	"diagnose/evidence"
)

// orderedFirst takes the proof from causes that an order of accesses may explain as well: another value that is put into a
// variable cures the failure whoever should have stored it.
func (k *conclusion) orderedFirst() {
	for i := range k.out.Causes {
		c := &k.out.Causes[i]
		if c.Proof == evidence.Proved && slices.ContainsFunc(k.out.Causes, func(o evidence.Cause) bool { return o.Interleaving != nil && mayBeOrder(c, &o) }) {
			c.Unprove()
		}
	}
}

// mayBeOrder reports whether what a cause says may be so because of the order of accesses that another one tells, and without
// which the run passes: that nothing gave a variable its value, where another thread or a handler did so too late; or that a store has a
// bad value, which may have been read too early or too late, where the store itself breaks no rule.
func mayBeOrder(c, order *evidence.Cause) bool {
	if !slices.ContainsFunc(order.Experiments, func(e evidence.Experiment) bool { return !e.Control && e.Agrees() }) {
		return false
	}
	return c.Kind == evidence.CauseUninitialised && slices.Contains(order.Interleaving.Variables, c.Variable) || c.Kind == evidence.CauseBadValue
}

// handedOn reports whether stores of a way were made by another thread than the one that failed.
func (c *chain) handedOn() bool {
	failing := c.rec.Manifest.Outcome.Thread
	return slices.ContainsFunc(c.links, func(l link) bool {
		return l.returned == nil && l.access.By == evidence.ByProgram && l.access.Thread != failing
	})
}

// atInstruction are the signals that come at an instruction which raises them, so that their handlers interrupt nothing else.
var atInstruction = map[string]bool{"SIGSEGV": true, "SIGBUS": true, "SIGFPE": true, "SIGILL": true, "SIGTRAP": true}

// ordered reports whether the store that a change was made to is of another thread than the one that failed, or of a handler,
// and the failing thread had read another value there before, or is not known not to. The change leaves the store out
// altogether; when it came may be what matters. So it is with a free of another thread, and with a value that was read too early.
func (ce *chainExperiments) ordered(x *change) bool {
	if x.link < 0 && ce.chain.made != nil && ce.chain.made.call != nil && ce.chain.made.call.thread != ce.chain.rec.Manifest.Outcome.Thread {
		return ce.chain.victim.kind == evidence.CauseUseAfterFree || ce.chain.victim.kind == evidence.CauseDoubleFree
	}
	if x.link < 0 || ce.chain.victim.damaged() {
		return false
	}
	if ce.readEarly(x.link) || ce.chain.overtaken != nil && ce.chain.mayInterleave() {
		return true
	}
	l, failing := &ce.chain.links[min(x.link, ce.headline())], ce.chain.rec.Manifest.Outcome.Thread
	interrupts := l.seen.Handler != "" && !atInstruction[l.seen.Handler]
	if l.returned != nil || l.access.By != evidence.ByProgram || l.access.Thread == failing && !interrupts {
		return false
	}
	loaded := evidence.Addr(0) // the instruction of the failing thread that read the bad value there, if it is known
	if b := ce.chain.Blame; b != nil && l == &ce.chain.links[0] && b.Cell != nil && *b.Cell == l.victim.start && !l.victim.failing {
		loaded = b.Loaded.PC
	}
	stored, seen := false, loaded == 0
	for i := range l.log.Accesses {
		a := &l.log.Accesses[i]
		reads := a.Kind == evidence.CodeRead && a.Thread == failing && l.victim.concerns(l.log, a)
		switch {
		case *a == l.access:
			stored = true
		case reads && !stored && a.New != l.access.New:
			return true
		case reads && stored && a.PC == loaded:
			seen = true
		}
	}
	return !seen // the log lacks the read, and may lack others
}

// changedSince reports whether memory had another value at the end of the run than the one that was read there, or may have had.
func (c *chain) changedSince(v *victim) bool {
	if v.value == nil {
		return true
	}
	var b [wordSize]byte
	size := max(1, min(v.size, wordSize))
	n, err := c.Process.ReadMemory(v.start, b[:size])
	return err != nil || n < size || binary.LittleEndian.Uint64(b[:]) != *v.value
}

// mayInterleave reports whether the recorded run had several threads, or a handler of a signal that interrupts. Of a log that cannot be
// read it is not known.
func (c *chain) mayInterleave() bool {
	alone, err := c.alone()
	return !alone || err != nil
}

// readEarly reports whether a value on the way from a link was read by one thread before another one also stored to the same
// memory: with that store first, the reader would have had another value.
func (ce *chainExperiments) readEarly(from int) bool {
	reader := ce.chain.rec.Manifest.Outcome.Thread
	for i := range ce.chain.links[:min(from, ce.headline())+1] {
		l, stored := &ce.chain.links[i], false
		if l.log == nil { // a call's result
			continue
		}
		for k := range l.log.Accesses {
			a := &l.log.Accesses[k]
			if *a == l.access {
				stored = true
			} else if stored && writesMemory(a.Kind) && a.Thread != reader && l.victim.concerns(l.log, a) {
				return true
			}
		}
		reader = l.access.Thread
	}
	return false
}
