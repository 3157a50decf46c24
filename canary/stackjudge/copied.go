package stackjudge

import (
	"bytes"

	"diagnose/evidence"
	"diagnose/image"
)

// Bounds of the search for bytes.
const (
	mostSearched = 1 << 30 // bytes, for all searches of a judgement
	searchStep   = 1 << 20
	mostKey      = 4096 // bytes that are compared
	mostFound    = 64   // places that are looked at
	mostSame     = 4    // places that are reported
	longestLead  = 16   // bytes of the array that are searched for with those after it
	redZone      = 128  // bytes below the stack pointer that a function may use (psABI 3.2.2)
)

// copyOf is the run of an array's contents over the word if the same bytes are elsewhere in memory: the last of the
// array, those between, and the word. The frame itself cannot have them twice, as the word is bad.
func (j *judge) copyOf(w *window, x *array, above *word) (run, bool) {
	p, ok := w.placeOf(x, above)
	if !ok {
		return run{}, false
	}
	from := max(p.start, p.end-longestLead)
	key := w.data[from : p.word+8]
	if len(key) > mostKey || p.end-from < shortest || !telling(key) || !telling(key[p.word-from:]) {
		return run{}, false
	}
	own := run{evidence.RunCopy, w.base + evidence.Addr(from), above.addr + 8}
	found := j.search(key, own)
	if len(found) == 0 {
		return run{}, false
	}
	for i, at := range found {
		r := j.extend(w, own, at)
		if i == 0 || r.end-r.start > own.end-own.start {
			own = r
		}
	}
	return own, true
}

// telling reports whether bytes are more than zeros and what other memory has by chance.
func telling(data []byte) bool {
	var seen [256]bool
	kinds, set := 0, 0
	for _, c := range data {
		if !seen[c] {
			seen[c] = true
			kinds++
		}
		if c != 0 {
			set++
		}
	}
	return kinds >= 4 && set >= 4
}

// extend adds the bytes before and after a run that are the same as those around another place.
func (j *judge) extend(w *window, r run, other evidence.Addr) run {
	start, end := int(r.start-w.base), int(r.end-w.base)
	before := make([]byte, min(start, mostSize))
	if n, _ := j.Process.ReadMemory(other-evidence.Addr(len(before)), before); n == len(before) {
		for i := len(before); i > 0 && before[i-1] == w.data[start-1]; i-- {
			start--
		}
	}
	after := make([]byte, len(w.data)-end)
	n, _ := j.Process.ReadMemory(other+(r.end-r.start), after)
	for i := 0; i < n && after[i] == w.data[end]; i++ {
		end++
	}
	return run{r.kind, w.base + evidence.Addr(start), w.base + evidence.Addr(end)}
}

// search finds bytes in the memory of the program, other than those of a run and those of functions that have
// returned.
func (j *judge) search(key []byte, own run) (found []evidence.Addr) {
	for i := range j.Process.Mappings {
		m := &j.Process.Mappings[i]
		size := uint64(m.End - m.Start)
		if !m.Readable() || m.Executable() || size > j.left {
			continue
		}
		j.left -= size
		found = j.searchIn(found, m, key, own)
		if len(found) >= mostFound {
			break
		}
	}
	return found
}

func (j *judge) searchIn(found []evidence.Addr, m *image.Mapping, key []byte, own run) []evidence.Addr {
	start := m.Start
	if sp := j.Frames[0].Registers.SP(); m.Contains(sp) {
		start = max(start, sp-redZone)
	}
	buffer := make([]byte, min(searchStep+mostKey, uint64(m.End-start)))
	for at := start; at < m.End; at += searchStep {
		n, _ := j.Process.ReadMemory(at, buffer[:min(uint64(len(buffer)), uint64(m.End-at))])
		for off := 0; off < min(n, searchStep) && len(found) < mostFound; {
			k := bytes.Index(buffer[off:n], key)
			if k < 0 || off+k >= searchStep {
				break
			}
			hit := at + evidence.Addr(off+k)
			off += k + 1 // a text that repeats itself overlaps with itself
			if hit+evidence.Addr(len(key)) > own.start && hit < own.end || j.written(hit) {
				continue
			}
			found = append(found, hit)
		}
	}
	return found
}

// written reports whether an address is in the buffer of one of the standard streams: a function that printed the
// bytes has copied them there. The offsets are those of _IO_buf_base and _IO_buf_end (glibc, bits/types/struct_FILE.h).
func (j *judge) written(at evidence.Addr) bool {
	for _, name := range []string{"_IO_2_1_stdout_", "_IO_2_1_stderr_"} {
		s, ok := j.Process.SymbolNamed(name)
		if !ok {
			continue
		}
		start, err := image.Uint64(j.Process, s.Addr+0x38)
		end, err2 := image.Uint64(j.Process, s.Addr+0x40)
		if err == nil && err2 == nil && uint64(at) >= start && uint64(at) < end {
			return true
		}
	}
	return false
}

// sameBytes are the other places with the bytes of a run around the end of its array, over the word. Where all of them differ
// from a text before it ends, the run ends there: what follows was in memory before.
func (j *judge) sameBytes(o *overrun) (list []evidence.SameBytes) {
	w, r := o.window, &o.run
	word := o.activation.word.addr
	last := &o.arrays[len(o.arrays)-1]
	start := max(r.start, last.addr, last.end()-longestLead)
	key := run{r.kind, start, min(r.end, word+8)}
	data := w.data[start-w.base : key.end-w.base]
	if len(data) < 8 || len(data) > mostKey || r.kind == evidence.RunPattern || uniform(data) {
		return nil
	}
	given := j.given()
	var furthest evidence.Addr
	for _, at := range j.search(data, *r) {
		x := j.extend(w, key, at)
		furthest = max(furthest, x.end)
		from := max(x.start, r.start, o.arrays[0].addr)
		size := uint64(min(x.end, r.end) - from)
		if len(list) > 0 && size > list[0].Size {
			list = list[:0]
		}
		if len(list) > 0 && size < list[0].Size || len(list) == mostSame {
			continue // a part of a text that repeats itself
		}
		same := j.describePlace(at-(start-from), given)
		same.Offset, same.Size = uint64(from-max(r.start, o.arrays[0].addr)), size
		list = append(list, same)
	}
	if furthest > word && furthest < r.end {
		r.end = furthest
	}
	return list
}

// uniform reports whether bytes are all the same.
func uniform(data []byte) bool {
	return bytes.Count(data, data[:1]) == len(data)
}

// describePlace says what memory is at an address.
func (j *judge) describePlace(at evidence.Addr, given []givenText) evidence.SameBytes {
	s := evidence.SameBytes{Place: evidence.CopyOther, Addr: at}
	for i := range given {
		if g := &given[i]; at >= g.start && at < g.end {
			s.Place, s.Name = g.place, g.name
			return s
		}
	}
	switch place := j.Process.Place(at); place.Class {
	case evidence.PlaceGlobal:
		s.Place, s.Name = evidence.CopyGlobal, place.Symbol
	case evidence.PlaceReadOnly:
		s.Place, s.Name = evidence.CopyConstant, place.Symbol
	case evidence.PlaceHeap:
		s.Place = evidence.CopyHeap
	case evidence.PlaceStack:
		s.Place = evidence.CopyStack
		if j.StackName != nil {
			if s.Name = j.StackName(at); s.Name != "" {
				s.Place = evidence.CopyVariable
			}
		}
	}
	return s
}
