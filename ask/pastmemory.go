package ask

import (
	"encoding/binary"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/value"
)

// wordSize is the size of the words of a pastMemory, in bytes.
const wordSize = 8

// pastMemory is memory as it was at a time, made of words whose writes are known. Reading another word fails, and notes it.
type pastMemory struct {
	words map[evidence.Addr]*pastWord
	// maps are the mappings at the end of the span.
	maps []image.Mapping
	// unread counts the words that were needed and are beyond the bound.
	unread int
}

// pastWord is a word of memory.
type pastWord struct {
	addr evidence.Addr
	// writable: its writes are traced. Others are constant.
	writable bool
	// known: its value is known; end is the one at the end of the span, now the current one.
	known    bool
	end, now uint64
	read     bool
}

func (m *pastMemory) from(p *image.Process) { m.maps = slices.Clone(p.Mappings) }

// read reads the words that are new.
func (m *pastMemory) read(p *image.Process) error {
	for _, w := range m.words {
		if w.read {
			continue
		}
		w.read = true
		v, err := image.Uint64(p, w.addr)
		w.known, w.end, w.now = err == nil, v, v
	}
	return nil
}

// rewind sets the words to their values at the start: those that the first writes found, or else those of the end.
func (m *pastMemory) rewind(log *evidence.AccessLog, watched []*pastWord) {
	for _, w := range m.words {
		w.now = w.end
	}
	done := make([][wordSize]bool, len(watched))
	for i := range log.Accesses {
		a := &log.Accesses[i]
		if int(a.Variable) >= len(watched) {
			continue
		}
		w := watched[a.Variable]
		var old [wordSize]byte
		binary.LittleEndian.PutUint64(old[:], a.Old)
		for b := range int(a.Size) {
			if at := int(a.Offset) + b; at < wordSize && !done[a.Variable][at] {
				done[a.Variable][at] = true
				w.set(at, old[b])
			}
		}
	}
}

func (w *pastWord) set(at int, b byte) {
	w.now = w.now&^(0xff<<(8*at)) | uint64(b)<<(8*at)
}

// write makes a write.
func (w *pastWord) write(a *evidence.Access) {
	var now [wordSize]byte
	binary.LittleEndian.PutUint64(now[:], a.New)
	for b := range int(a.Size) {
		if at := int(a.Offset) + b; at < wordSize {
			w.set(at, now[b])
		}
	}
}

// ReadMemory implements image.Memory.
func (m *pastMemory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	n := 0
	missing := false
	for n < len(p) {
		start := (addr + evidence.Addr(n)) &^ (wordSize - 1)
		w := m.word(start)
		if w == nil {
			return n, &image.MemoryError{Addr: addr + evidence.Addr(n), Reason: "is not mapped"}
		}
		var data [wordSize]byte
		binary.LittleEndian.PutUint64(data[:], w.now)
		missing = missing || !w.known
		n += copy(p[n:], data[addr+evidence.Addr(n)-start:])
	}
	if missing {
		return 0, &image.MemoryError{Addr: addr, Reason: "was not read"}
	}
	return n, nil
}

// word returns the word at an address, which is new if it was not needed before; nil: there is no memory, or there are too many.
func (m *pastMemory) word(addr evidence.Addr) *pastWord {
	if w := m.words[addr]; w != nil {
		return w
	}
	i := slices.IndexFunc(m.maps, func(x image.Mapping) bool { return addr >= x.Start && addr < x.End })
	if i < 0 {
		return nil
	}
	w := &pastWord{addr: addr, writable: m.maps[i].Writable()}
	if len(m.words) >= mostWords {
		m.unread++
		return w
	}
	m.words[addr] = w
	return w
}

// evaluate returns the value of an expression in this memory.
func (m *pastMemory) evaluate(s *subject) evidence.Value {
	frame := *s.frame
	frame.Memory = m
	o, err := s.expr.Eval(s.place.In(&frame))
	if err != nil {
		return value.Missing(err)
	}
	return o.Format(shown)
}
