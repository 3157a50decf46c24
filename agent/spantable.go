package agent

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
)

// spanTable reads the records of spans, and the words of their slots.
type spanTable struct {
	source source
	root   *heapRoot
}

// spanAt returns the span whose units hold the address; nil if none does.
func (t *spanTable) spanAt(addr evidence.Addr) (*Span, error) {
	if !t.root.inObjects(addr) {
		return nil, nil
	}
	return t.spanOf(t.root.unitOf(addr))
}

// spanOf returns the span that a unit belongs to; nil if there is none.
func (t *spanTable) spanOf(unit uint64) (*Span, error) {
	if unit >= t.root.Spans.Used {
		return nil, nil
	}
	raw, err := t.rawSpan(unit)
	if err != nil {
		return nil, err
	}
	head := unit
	if raw.Kind == SpanInterior {
		back := uint64(raw.Units)
		if back == 0 || back > unit {
			return nil, fmt.Errorf("agent: unit %d claims to be %d units after its span's first", unit, back)
		}
		head -= back
		if raw, err = t.rawSpan(head); err != nil {
			return nil, err
		}
	}
	// What a span left in its units stays when it goes back to the pool.
	if raw.Kind == SpanNone || raw.Kind == SpanInterior || head+uint64(raw.Units) <= unit {
		return nil, nil
	}
	return t.root.span(head, raw)
}

func (t *spanTable) rawSpan(unit uint64) (RawSpan, error) {
	var p [spanSize]byte
	if err := t.source.read("record of a span", t.root.Spans.Start+unit*spanSize, p[:]); err != nil {
		return RawSpan{}, err
	}
	return decodeSpan(p[:]), nil
}

func (t *spanTable) objectAt(s *Span, slot int) (Object, error) {
	var word [1]uint64
	var raw [8]byte
	if err := t.words(new(patience), s, slot, word[:], raw[:]); err != nil {
		return Object{}, err
	}
	return s.object(slot, word[0]), nil
}

// lookup returns what the slot that contains addr holds: an object, live or
// freed, or a fresh slot. found is false when addr is in no slot.
func (t *spanTable) lookup(addr evidence.Addr) (o Object, found bool, err error) {
	s, err := t.spanAt(addr)
	if s == nil || err != nil {
		return Object{}, false, err
	}
	slot, ok := s.slotOf(addr)
	if !ok {
		return Object{}, false, nil
	}
	o, err = t.objectAt(s, slot)
	return o, err == nil, err
}

// spansPerRead is how many records of the spans' window are read at once.
const spansPerRead = 512

// each hands out all spans in address order. A span's units are passed
// over, so that no two spans overlap.
func (t *spanTable) each(visit func(*Span)) (gaps Gaps) {
	raw := make([]byte, spansPerRead*spanSize)
	used := t.root.Spans.Used
	var patience patience
	for unit := uint64(0); unit < used; {
		n := min(spansPerRead, used-unit)
		p := raw[:n*spanSize]
		if err := patience.read(t.source, "records of spans", t.root.Spans.Start+unit*spanSize, p); err != nil {
			gaps.Add(err)
			if err == errGivenUp {
				break
			}
			unit += n
			continue
		}
		end := unit + n
		for unit < end {
			unit += t.spanIn(p[(unit+n-end)*spanSize:], unit, visit, &gaps)
		}
	}
	return gaps
}

// spanIn hands out the span whose record p begins with, if there is one, and
// returns by how many units to advance.
func (t *spanTable) spanIn(p []byte, unit uint64, visit func(*Span), gaps *Gaps) uint64 {
	if p[0] == SpanNone || p[0] == SpanInterior {
		return 1
	}
	s, err := t.root.span(unit, decodeSpan(p))
	if err != nil {
		gaps.Add(err)
		return 1
	}
	visit(s)
	return uint64(s.raw.Units)
}

// words reads the words of slots [first, first+len(words)) by way of raw.
func (t *spanTable) words(p *patience, s *Span, first int, words []uint64, raw []byte) error {
	raw = raw[:8*len(words)]
	if err := p.read(t.source, "words of slots", s.raw.Words+8*uint64(first), raw); err != nil {
		return err
	}
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return nil
}
