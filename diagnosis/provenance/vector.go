package provenance

import (
	"cmp"
	"strings"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image"
	"diagnose/image/x86/transfer"
)

// A std::vector has three pointers in a row, to its first element, past its last one, and past its memory: libstdc++
// (bits/stl_vector.h, _Vector_impl_data) and libc++ (vector, __begin_, __end_, __end_cap_).
const (
	vectorFinish = wordBytes
	vectorEnd    = 2 * wordBytes
	wordBytes    = 8
)

// unfilled ends the way at a read, of the bytes l by operand k of step n, of memory that a std::vector has for elements and no element is in. The
// object is its memory. The code read the pointer to the first element from the vector.
func (f *follower) unfilled(n, k int, l flow.Location, object *flow.Object) bool {
	if object.Mapped() || f.trace.Step(n).Inst.Operands[k].Access != evidence.Read || f.program.Foreign(f.trace.Step(n).PC) {
		return false
	}
	for _, pointer := range f.pointers(n, k) {
		vector := f.vectorOf(pointer, n, object.Addr)
		if vector == 0 {
			continue
		}
		finish, ok := f.elements(vector, n, object)
		if !ok || l.Addr < finish {
			continue
		}
		w := f.way
		w.Declared = &Declared{Name: cmp.Or(f.firstElement(vector, n), "a std::vector"), Addr: object.Addr, Size: uint64(finish - object.Addr), Room: object.Size}
		w.Object, w.AccessPC, w.access = nil, f.ownPlace(n), n
		w.Beyond = int64(l.Addr-finish) + 1
		f.end(Outside, n)
		w.Led = f.led(n, k, object)
		return true
	}
	return false
}

// vectorOf is the std::vector from which its own code read the pointer to the first element, of which the one in l before step n was made; 0: none is
// known.
func (f *follower) vectorOf(l flow.Location, n int, first evidence.Addr) evidence.Addr {
	return recall(&f.memo.vectors, f.pointerWay(l, n), stepOf, func(d flow.Definition) (evidence.Addr, bool) {
		var read flow.Location
		switch d.Kind {
		case flow.Copied:
			read = d.From[0]
		case flow.Computed: // an index was added to the pointer
			read, _ = f.pointerOf(d)
		}
		if read.Space != transfer.Memory {
			return 0, false
		}
		v, known := f.value(flow.Memory(read.Addr, wordBytes), d.At)
		return read.Addr, known && evidence.Addr(v) == first && (f.program.OfVector(f.trace.Step(d.At).PC) || f.firstElement(read.Addr, d.At) != "")
	})
}

// firstElement is what the code at a step calls the std::vector that has its pointer to the first element at an address; empty: it knows none there.
func (f *follower) firstElement(addr evidence.Addr, n int) string {
	p := f.program.StaticPart(addr, wordBytes)
	if p == nil {
		p = f.program.Part(f.scopePoint(n), 0, addr, wordBytes)
	}
	if p == nil {
		return ""
	}
	for _, member := range []string{"._M_impl._M_start", ".__begin_"} {
		if name, ok := strings.CutSuffix(p.Name, member); ok {
			return name
		}
	}
	return ""
}

// elements is where the elements of a std::vector end before step n; ok is false if it is not known, or the object is not the vector's memory.
func (f *follower) elements(vector evidence.Addr, n int, object *flow.Object) (finish evidence.Addr, ok bool) {
	word := func(offset evidence.Addr) evidence.Addr {
		v, _ := f.value(flow.Memory(vector+offset, wordBytes), n)
		return evidence.Addr(v)
	}
	end := object.Addr + evidence.Addr(object.Size)
	finish = word(vectorFinish)
	return finish, word(0) == object.Addr && word(vectorEnd) == end && finish >= object.Addr && finish <= end
}

// OfVector implements Program.
func (i *Image) OfVector(pc evidence.Addr) bool {
	calls := i.process.Symbolize(pc, image.AtInstruction)
	for k := range calls {
		if name := image.CanonicalName(calls[k].Site.Function); strings.HasPrefix(name, "std::vector<") || strings.HasPrefix(name, "std::__1::vector<") {
			return true
		}
	}
	return false
}
