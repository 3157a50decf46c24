package stackjudge

import (
	"encoding/binary"
	"slices"

	"diagnose/evidence"
)

// window is the memory around the arrays of a frame.
type window struct {
	base evidence.Addr
	data []byte
	// other are the bytes that belong to variables without an array. The function may have written them after the
	// overrun, so they do not end a run.
	other []bool
}

const (
	// lead and trail are what a window has before the lowest array and after the word.
	lead  = 64
	trail = 64 << 10
)

// windowOf reads the memory around arrays and the word above them; nil: it cannot be read as far as the word.
func (j *judge) windowOf(a *activation, arrays []array) *window {
	base := arrays[0].addr
	if _, err := j.Process.ReadMemory(base-lead, make([]byte, lead)); err == nil {
		base -= lead
	}
	data := make([]byte, uint64(a.word.addr-base)+8+trail)
	n, _ := j.Process.ReadMemory(base, data)
	if n < int(a.word.addr-base)+8 {
		return nil
	}
	w := &window{base, data[:n], make([]bool, n)}
	for _, v := range a.variables {
		for at := max(v.start, base); at < min(v.end, a.word.addr); at++ {
			w.other[at-base] = true
		}
	}
	return w
}

// run is a piece of memory whose bytes belong together.
type run struct {
	kind       evidence.RunKind
	start, end evidence.Addr
}

// span is a run by its indexes in a window.
type span struct{ start, end int }

// place has the indexes of an array and of the word above it.
type place struct{ start, end, word int }

func (w *window) placeOf(x *array, above *word) (place, bool) {
	if x.addr < w.base {
		return place{}, false
	}
	p := place{int(x.addr - w.base), int(x.end() - w.base), int(above.addr - w.base)}
	return p, p.start < p.end && p.end <= p.word && p.word+8 <= len(w.data)
}

// runOf is the run of an array's contents over its end and the word; false: they do not continue so far.
func (w *window) runOf(x *array, above *word) (run, bool) {
	p, ok := w.placeOf(x, above)
	if !ok {
		return run{}, false
	}
	made := func(kind evidence.RunKind, s span) (run, bool) {
		return run{kind, w.base + evidence.Addr(s.start), w.base + evidence.Addr(s.end)}, true
	}
	if s, ok := w.text(p, above.kind); ok {
		return made(evidence.RunText, s)
	}
	for _, period := range []int{1, 2, 4, 8, 16} {
		if s, ok := w.pattern(p, period); ok {
			return made(evidence.RunPattern, s)
		}
	}
	if x.element == 0 {
		return run{}, false
	}
	if s, ok := w.progression(p, x.element); ok {
		return made(evidence.RunProgression, s)
	}
	if s, ok := w.numbers(p, x.element); ok && x.element >= 2 {
		return made(evidence.RunNumbers, s)
	}
	return run{}, false
}

// shortest is how many bytes or elements at the end of an array make it part of a run.
const shortest = 4

// text extends a text from the end of the array both ways. It has to have the end of the array, and at least a
// part of the word that no other text has by chance: a byte and the zero after it, or two. Of a saved register
// it is the whole word, or at least half of it and zeros.
func (w *window) text(p place, kind evidence.FrameWord) (span, bool) {
	s := span{p.end, p.end}
	for s.start > 0 && isText(w.data[s.start-1]) {
		s.start--
	}
	own := 0
	for s.end < len(w.data) && (isText(w.data[s.end]) || w.other[s.end]) {
		if !w.other[s.end] {
			own++
		}
		s.end++
	}
	covered := s.end - p.word
	switch {
	case own < min(shortest, s.end-p.end):
		return s, false
	case p.end-s.start < min(p.end-p.start, shortest), covered < 1:
		return s, false
	case covered >= 8:
		return s, true
	case kind == evidence.WordSavedRegister:
		return s, covered >= shortest && allZero(w.data[s.end:p.word+8])
	}
	return s, covered >= 2 || w.data[s.end] == 0
}

func isText(c byte) bool {
	return c >= ' ' && c <= '~' || c == '\n' || c == '\t' || c == '\r'
}

// pattern extends the repetition of so many bytes from the end of the array both ways. It has to have the whole word,
// and the array's last bytes at least twice.
func (w *window) pattern(p place, period int) (span, bool) {
	need := max(2*period, 8)
	if p.end-p.start < need {
		return span{}, false
	}
	s := span{p.end - period, p.end}
	for s.start > 0 && w.data[s.start-1] == w.data[s.start-1+period] {
		s.start--
	}
	for s.end < len(w.data) && (w.data[s.end] == w.data[p.end-period+(s.end-p.end)%period] || w.other[s.end]) {
		s.end++
	}
	return s, p.end-s.start >= need && s.end >= p.word+8 && !allZero(w.data[p.word:p.word+8])
}

// progression extends elements with the same difference, which is not 0, from the end of the array both ways.
func (w *window) progression(p place, size int) (span, bool) {
	if p.end-p.start < shortest*size || p.word+8 > len(w.data) {
		return span{}, false
	}
	difference := w.element(p.end-size, size) - w.element(p.end-2*size, size)
	mask := uint64(1)<<(8*size-1)<<1 - 1
	last := w.element(p.end-size, size)
	differs := func(at int) bool {
		steps := uint64(int64(at-p.end)/int64(size) + 1)
		return (w.element(at, size)-last-steps*difference)&mask != 0
	}
	s := span{p.end, p.end}
	for s.start >= size && !differs(s.start-size) {
		s.start -= size
	}
	for s.end+size <= len(w.data) && (!differs(s.end) || w.otherIn(s.end, size)) {
		s.end += size
	}
	return s, difference&mask != 0 && p.end-s.start >= shortest*size && s.end >= p.word+8
}

// numbers extends small numbers from the end of the array both ways. All elements in the word must be other than 0,
// and most of the array's last ones.
func (w *window) numbers(p place, size int) (span, bool) {
	if p.end-p.start < shortest*size {
		return span{}, false
	}
	zeros := 0
	for at := p.end - shortest*size; at < p.end; at += size {
		if v := w.signed(at, size); v == 0 {
			zeros++
		}
	}
	for at := p.end; at < p.word+8 && size < 8; at += size {
		if at >= p.word && w.signed(at, size) == 0 {
			return span{}, false
		}
	}
	s := span{p.end, p.end}
	for s.start >= size && small(w.signed(s.start-size, size), size) {
		s.start -= size
	}
	for s.end+size <= len(w.data) && (small(w.signed(s.end, size), size) || w.otherIn(s.end, size)) {
		s.end += size
	}
	return s, size < 8 && zeros <= 1 && p.end-s.start >= shortest*size && s.end >= p.word+8
}

// small reports whether a number is small for its size: an address has no such halves.
func small(v int64, size int) bool {
	limit := int64(1) << 20
	if size == 2 {
		limit = 1 << 12
	}
	return v > -limit && v < limit
}

// otherIn reports whether one of some bytes belongs to another variable.
func (w *window) otherIn(at, size int) bool { return slices.Contains(w.other[at:at+size], true) }

// element is the number of some bytes.
func (w *window) element(at, size int) uint64 {
	var b [8]byte
	copy(b[:size], w.data[at:])
	return binary.LittleEndian.Uint64(b[:])
}

func (w *window) signed(at, size int) int64 {
	shift := 64 - 8*size
	return int64(w.element(at, size)<<shift) >> shift
}

func allZero(data []byte) bool {
	for _, c := range data {
		if c != 0 {
			return false
		}
	}
	return true
}
