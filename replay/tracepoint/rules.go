package tracepoint

import (
	"errors"

	"diagnose/evidence"
	"diagnose/replay/inline"
	"diagnose/replay/tracee"
)

// prepareLog maps the log of the rules. Without it threads stop at all arrivals.
func (x *Tracepoints) prepareLog(t *tracee.Thread) error {
	if len(x.log.rules) == 0 || x.log.block != nil {
		return nil
	}
	err := x.log.share(x.process, t)
	if errors.Is(err, errOwnGS) {
		x.log.rules = nil
		return nil
	}
	x.log.makeRoom(x.replay)
	return err
}

// Arm prepares a stopped thread that is new.
func (x *Tracepoints) Arm(t *tracee.Thread) error {
	if x == nil {
		return nil
	}
	x.log.report(x.replay)
	return x.log.arm(t)
}

// Drain reports what the rules have handled so far.
func (x *Tracepoints) Drain() error {
	if x == nil {
		return nil
	}
	return x.log.drain(x.replay, nil)
}

// drained takes the entries of a thread that stops for that.
func (x *Tracepoints) drained(t *tracee.Thread, site *inline.Site) error {
	after := t
	if site == x.log.full {
		after = nil
	}
	if err := x.log.drain(x.replay, after); err != nil || x.replay.Over() {
		return err
	}
	if site == x.log.full {
		x.log.empty()
	}
	return x.replay.Resume(t)
}

// Count counts an arrival of a thread that has stopped at a rule's instruction since the event with the ordinal. counted is false if
// nothing in the process counts them.
func (x *Tracepoints) Count(t *tracee.Thread, pc evidence.Addr, ordinal uint64) (count uint64, counted bool) {
	r := x.log.at(uint64(pc))
	if r == nil {
		return 0, false
	}
	return x.log.arrive(t.TID, r, ordinal)
}

// Number returns the next number of a numbered arrival.
func (x *Tracepoints) Number() uint64 {
	if x.log.block == nil {
		x.numbers++
		return x.numbers
	}
	return x.log.word(blockNumber).Add(1)
}

// Handled counts the arrivals that rules have handled so far. Other goroutines may call it.
func (x *Tracepoints) Handled() uint64 {
	if x == nil || x.log.block == nil {
		return 0
	}
	return x.log.word(blockArrivals).Load()
}

// Ruled counts the instructions at which a rule runs.
func (x *Tracepoints) Ruled() int {
	n := 0
	if x != nil {
		for _, c := range x.log.codes {
			if !c.rule.asks {
				n++
			}
		}
	}
	return n
}

// Close frees the memory of the log.
func (x *Tracepoints) Close() {
	if x != nil {
		x.log.close()
	}
}
