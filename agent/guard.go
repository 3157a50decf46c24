package agent

// GuardRange bounds the offset that GuardWord allows, in bytes: how much is taken
// for a member's offset.
const GuardRange = 4096

// GuardWord returns the object of whose guard a value was read, and the offset
// that was added to the value since. found is false when the value is no guard
// of a slot that was ever handed out. gaps are spans that could not be read.
//
// A guard is turned back into the number of its slot. That a value of other
// origin, whose bytes all have their high bit set, is taken for a guard is an
// accident of 2^-43 for each slot of the heap.
func (h *Heap) GuardWord(value uint64) (o Object, offset int64, found bool, gaps Gaps) {
	candidates := h.root.guardNumbers(value)
	if len(candidates) == 0 {
		return Object{}, 0, false, Gaps{}
	}
	gaps = h.spans.each(func(s *Span) {
		for _, c := range candidates {
			i, ok := s.slotOfNumber(c.number)
			if !ok || found {
				continue
			}
			if candidate, err := h.spans.objectAt(s, i); err == nil && candidate.State != Fresh {
				o, offset, found = candidate, c.offset, true
			}
		}
	})
	return o, offset, found, gaps
}

// guardNumber is a slot's number whose guard is a value less an offset.
type guardNumber struct {
	number uint64
	offset int64
}

// guardNumbers inverts CanaryWord for all offsets. The guard does not say what
// the high bits of the product's bytes were: all 256 possibilities are tried.
func (r *heapRoot) guardNumbers(value uint64) (list []guardNumber) {
	const upper = CanaryHigh &^ (1<<24 - 1) // bytes that an offset leaves alone but for a carry
	if value&upper != upper {
		return nil
	}
	for offset := int64(1 - GuardRange); offset < GuardRange; offset++ {
		word := value - uint64(offset)
		if word&CanaryHigh != CanaryHigh {
			continue
		}
		low := (word ^ r.Options.Canary) &^ CanaryHigh
		for bits := range uint64(256) {
			product := low
			for i := range 8 {
				product |= bits >> i & 1 << (8*i + 7)
			}
			if number := product * canaryInverse; r.isSlotNumber(number) {
				list = append(list, guardNumber{number, offset})
			}
		}
	}
	return list
}

// canaryInverse is what CanaryFactor gives 1 with, modulo 2^64.
const canaryInverse = 0xf1c990a994a4c737

// isSlotNumber reports whether a slot can have this number.
func (r *heapRoot) isSlotNumber(n uint64) bool {
	small, large := n-SlotNumber(r.Meta.Start), n-LargeNumber(r.Spans.Start)
	return small < SlotNumber(r.Meta.Mapped) || large < r.Spans.Used
}

// slotOfNumber returns the slot of the span that has a number.
func (s *Span) slotOfNumber(n uint64) (int, bool) {
	if s.Large() {
		return 0, n == LargeNumber(s.raw.Words)
	}
	i := n - SlotNumber(s.raw.Words)
	return int(i), i < uint64(s.Carved())
}
