package verify

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"

	"diagnose/evidence"
	"diagnose/replay/tracee"
)

// fakeMemory is a range of memory with a hole.
type fakeMemory struct {
	start uint64
	bytes []byte
	hole  tracee.Span
}

func (m *fakeMemory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	for i := range p {
		at := uint64(addr) + uint64(i)
		if at >= m.hole.Start && at < m.hole.End || at < m.start || at >= m.start+uint64(len(m.bytes)) {
			return i, errors.New("is not mapped")
		}
		p[i] = m.bytes[at-m.start]
	}
	return len(p), nil
}

func TestCompareMemory(t *testing.T) {
	const start, size = 0x10000, 3 * compareChunk
	core := make([]byte, size)
	for i := range core {
		core[i] = byte(i * 7)
	}
	memory := &fakeMemory{start: start, bytes: bytes.Clone(core)}
	flip := func(at ...int) {
		for _, i := range at {
			memory.bytes[i] ^= 0xff
		}
	}
	flip(0)                            // the first byte
	flip(100, 107)                     // joined
	flip(200, 209)                     // separate: eight equal bytes between them
	flip(compareChunk-1, compareChunk) // across a chunk
	flip(size - 1)                     // the last byte
	memory.hole = tracee.Span{Start: start + 2*compareChunk, End: start + 2*compareChunk + 2*4096}

	got, err := compareMemory(context.Background(), bytes.NewReader(core), []piece{{tracee.Span{Start: start, End: start + size}, 0}}, memory, nil)
	if err != nil {
		t.Fatal(err)
	}
	var spans []tracee.Span
	for _, r := range got.runs {
		spans = append(spans, tracee.Span{Start: r.Start - start, End: r.End - start})
	}
	want := []tracee.Span{{Start: 0, End: 1}, {Start: 100, End: 108}, {Start: 200, End: 201}, {Start: 209, End: 210}, {Start: compareChunk - 1, End: compareChunk + 1},
		{Start: 2 * compareChunk, End: 2*compareChunk + 2*4096}, {Start: size - 1, End: size}}
	if !reflect.DeepEqual(spans, want) {
		t.Errorf("runs %v, want %v", spans, want)
	}
	if got.count != uint64(len(want)) {
		t.Errorf("count %d, want %d", got.count, len(want))
	}
	if got.notReadable != 2*4096 || got.compared != size-2*4096 {
		t.Errorf("not readable %d, compared %d", got.notReadable, got.compared)
	}
	if r := got.runs[0]; r.want[0] != core[0] || r.got[0] != ^core[0] {
		t.Errorf("first run shows %x and %x", r.want, r.got)
	}
	if got.runs[5].unreadable == "" {
		t.Error("the hole is not told")
	}
}

func TestCompareCutCore(t *testing.T) {
	memory := &fakeMemory{start: 0x1000, bytes: make([]byte, 4096)}
	_, err := compareMemory(context.Background(), bytes.NewReader(make([]byte, 100)), []piece{{tracee.Span{Start: 0x1000, End: 0x2000}, 0}}, memory, nil)
	if err == nil {
		t.Error("a core that ends early was compared as if it did not")
	}
}

func TestPieceWithout(t *testing.T) {
	list := mergeExclusions([]exclusion{{Span: tracee.Span{Start: 50, End: 60}, what: "b"}, {Span: tracee.Span{Start: 0, End: 12}, what: "a"}, {Span: tracee.Span{Start: 55, End: 70}, what: "c"}, {Span: tracee.Span{Start: 95, End: 200}, what: "d"}, {Span: tracee.Span{Start: 300, End: 400}, what: "e"}})
	skipped := map[string]uint64{}
	got := piece{tracee.Span{Start: 10, End: 100}, 1000}.without(list, func(i int, n uint64) { skipped[list[i].what] += n })
	want := []piece{{tracee.Span{Start: 12, End: 50}, 1002}, {tracee.Span{Start: 70, End: 95}, 1060}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !reflect.DeepEqual(skipped, map[string]uint64{"a": 2, "b": 10, "c": 10, "d": 5}) {
		t.Errorf("skipped %v", skipped)
	}
}
