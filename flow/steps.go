package flow

import (
	"encoding/binary"

	"diagnose/evidence"
)

// steps are the steps of a trace in some ten bytes each: the changes from one to the next, in blocks that begin with all.
type steps struct {
	blocks []packed
	// last are those that do not fill a block yet.
	last    []step
	scratch []byte
	// changed are steps that became others after their block was made.
	changed map[int]step
	// open are the blocks that were asked for last, and order their numbers, the oldest at next.
	open  map[int][]step
	order [openBlocks]int
	next  int
}

// packed is a block of steps.
type packed []byte

const (
	blockSteps = 128
	openBlocks = 2048 // of 23 kB each
)

func newSteps() *steps { return &steps{open: map[int][]step{}, changed: map[int]step{}} }

func (x *steps) len() int { return len(x.blocks)*blockSteps + len(x.last) }

// add appends a step.
func (x *steps) add(s *step) {
	if x.last = append(x.last, *s); len(x.last) < blockSteps {
		return
	}
	x.scratch = x.scratch[:0]
	before := step{}
	for i := range x.last {
		x.scratch = x.last[i].pack(x.scratch, &before)
		before = x.last[i]
	}
	x.blocks = append(x.blocks, append(packed(nil), x.scratch...))
	x.last = x.last[:0]
}

// change replaces a step.
func (x *steps) change(n int, s step) {
	if k := n - len(x.blocks)*blockSteps; k >= 0 {
		x.last[k] = s
		return
	}
	x.changed[n] = s
	if list := x.open[n/blockSteps]; list != nil {
		list[n%blockSteps] = s
	}
}

// at returns a step, which stays as it is until another is added or changed.
func (x *steps) at(n int) *step {
	b := n / blockSteps
	if b == len(x.blocks) {
		return &x.last[n%blockSteps]
	}
	list := x.open[b]
	if list == nil {
		list = x.unpack(b)
	}
	return &list[n%blockSteps]
}

// all calls do for each step in order. The step is valid during the call.
func (x *steps) all(do func(n int, s *step)) {
	list := make([]step, blockSteps)
	for b := range x.blocks {
		x.unpackInto(list, b)
		for i := range list {
			do(b*blockSteps+i, &list[i])
		}
	}
	for i := range x.last {
		do(len(x.blocks)*blockSteps+i, &x.last[i])
	}
}

func (x *steps) unpackInto(list []step, b int) {
	before, data := &step{}, []byte(x.blocks[b])
	for i := range list {
		data = list[i].unpack(data, before)
		before = &list[i]
	}
	if len(x.changed) == 0 {
		return
	}
	for i := range list {
		if s, ok := x.changed[b*blockSteps+i]; ok {
			list[i] = s
		}
	}
}

func (x *steps) unpack(b int) []step {
	list := make([]step, blockSteps)
	x.unpackInto(list, b)
	if len(x.open) == openBlocks {
		delete(x.open, x.order[x.next])
	}
	x.order[x.next] = b
	x.next = (x.next + 1) % openBlocks
	x.open[b] = list
	return list
}

// The parts of a packed step, in a byte of bits. The rest follows if packedRest is set.
const (
	packedHolds = 1 << iota
	packedLibrary
	packedRest
)

// pack appends the changes from the step before.
func (s *step) pack(p []byte, before *step) []byte {
	parts, mask := byte(0), uint16(0)
	if s.holds {
		parts |= packedHolds
	}
	if s.library {
		parts |= packedLibrary
	}
	rest := [...]uint64{s.fsBase - before.fsBase, s.gsBase - before.gsBase, s.ordinal - before.ordinal, uint64(s.called) - uint64(before.called),
		uint64(s.thread) - uint64(before.thread), uint64(int64(s.previous) - int64(before.previous) - 1)}
	if rest != [...]uint64{5: 0} {
		parts |= packedRest
	}
	for r, v := range s.general {
		if v != before.general[r] {
			mask |= 1 << r
		}
	}
	p = append(p, parts, byte(mask), byte(mask>>8))
	p = binary.AppendVarint(p, int64(s.pc-before.pc))
	for r, v := range s.general {
		if mask&(1<<r) != 0 {
			p = binary.AppendVarint(p, int64(v-before.general[r]))
		}
	}
	if parts&packedRest != 0 {
		for _, v := range rest {
			p = binary.AppendVarint(p, int64(v))
		}
	}
	return p
}

// unpack takes the changes from the step before, and returns what follows them.
func (s *step) unpack(p []byte, before *step) []byte {
	*s = *before
	parts, mask := p[0], uint16(p[1])|uint16(p[2])<<8
	p = p[3:]
	next := func() uint64 {
		v, n := binary.Varint(p)
		p = p[n:]
		return uint64(v)
	}
	s.holds, s.library = parts&packedHolds != 0, parts&packedLibrary != 0
	s.pc += next()
	for r := range s.general {
		if mask&(1<<r) != 0 {
			s.general[r] += next()
		}
	}
	s.previous++
	if parts&packedRest != 0 {
		s.fsBase += next()
		s.gsBase += next()
		s.ordinal += next()
		s.called += evidence.Addr(next())
		s.thread += uint32(next())
		s.previous += int32(next())
	}
	return p
}
