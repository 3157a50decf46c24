package verdict

import (
	"diagnose/evidence"
)

// computed reports whether the program made another value of the one that a change was made to, before the failing check: the first may have
// been good, and the failure goes with it all the same.
func (ce *chainExperiments) computed(x *change) bool {
	c := ce.chain
	if x.link < 0 || x.link >= len(c.links) || c.victim.damaged() {
		return false
	}
	if c.otherDivisor() {
		return true
	}
	for k := range x.link {
		l := &c.links[k]
		if l.apart {
			continue
		}
		later, earlier := l.holds(), c.links[k+1].holds()
		if later != nil && earlier != nil && !later.sameAs(earlier) {
			return true
		}
	}
	return false
}

// otherDivisor reports whether the divisor that was 0 was computed of the value that the chain leads from.
func (c *chain) otherDivisor() bool {
	if c.Case.Failure.Kind != evidence.DivisionByZero || len(c.links) == 0 {
		return false
	}
	nearest := c.links[0].holds()
	return nearest != nil && nearest.value != 0
}

// holding is a number of so many bytes; those above them are 0.
type holding struct {
	value uint64
	size  int
}

// holds is the value that a link is about; nil: it is not known, or no number.
func (l *link) holds() *holding {
	if l.returned != nil {
		return &holding{l.returned.value, wordSize}
	}
	word := l.word()
	if l.victim.start < word || l.victim.size < 1 || l.victim.end() > word+evidence.Addr(min(l.access.Size, wordSize)) {
		return nil
	}
	shift := 64 - 8*l.victim.size
	return &holding{l.access.New >> (8 * (l.victim.start - word)) << shift >> shift, l.victim.size}
}

// signed is the value with 64 bits, as a signed number.
func (h *holding) signed() uint64 {
	shift := 64 - 8*h.size
	return uint64(int64(h.value<<shift) >> shift)
}

// sameAs reports whether one number is another, as signed or as unsigned ones; or the address of a member of what the other is the address of.
func (h *holding) sameAs(o *holding) bool {
	const member = 4096
	if h.value == o.value || h.signed() == o.signed() || h.value == o.signed() || h.signed() == o.value {
		return true
	}
	lowest := uint64(1 << 16)
	return h.size == wordSize && o.size == wordSize && min(h.value, o.value) >= lowest && max(h.value, o.value)-min(h.value, o.value) <= member
}
