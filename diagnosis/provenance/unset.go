package provenance

import (
	"cmp"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/debuginfo"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// unsetBy ends the way at memory that has had no value since a step, and that another one read.
func (f *follower) unsetBy(d flow.Definition, used int) {
	f.way.AccessPC = f.ownPlace(used)
	f.way.Part = useSearch{f}.name(d.Part, used)
	f.end(Unset, d.At)
	if d.Kind == flow.Freed {
		f.way.End = Freed
		return
	}
	f.chosen(d.Part, used)
}

// reading is the operand by which step n reads some memory; -1: none does.
func (f *steps) reading(l flow.Location, n int) int {
	s := f.trace.Step(n)
	if s.Inst == nil || s.Library {
		return -1
	}
	for k := range s.Inst.Operands {
		o := &s.Inst.Operands[k]
		if !o.IsMemory || o.Implicit || !o.Access.Reads() {
			continue
		}
		if m, known := f.trace.Extent(n, k); known && l.Addr >= m.Addr && l.Addr < m.Addr+evidence.Addr(m.Size) {
			return k
		}
	}
	return -1
}

// chosen follows the offset by which step n chose the bytes l, which nothing was stored to, among others that have values: it may be the
// offset that is wrong.
func (f *follower) chosen(l flow.Location, n int) {
	k := f.reading(l, n)
	if k < 0 {
		return
	}
	f.way.Part = cmp.Or(f.way.Part, f.element(l, n, k))
	object := f.way.Object
	if object == nil {
		object = f.trace.ObjectAt(l.Addr, n)
	}
	if object == nil {
		v := f.declared(n, k)
		if v == nil {
			v = f.table(n, k)
		}
		if v == nil || l.Addr < v.Addr || l.Addr >= v.end() {
			return
		}
		if p := partOf(v.Name, v.typ, int64(l.Addr-v.Addr), l.Size); p != nil && f.way.Part == "" {
			f.way.Part = p.Name
		}
		object = &flow.Object{Addr: v.Addr, Size: v.Size, Freed: -1}
	}
	beside := f.neighbours(object, l, n)
	if start := flow.Memory(object.Addr, max(l.Size, 1)); len(beside) == 0 && (start.Addr == l.Addr || f.set(object, start, n) < 0) {
		return // the object has no values
	}
	f.way.Beside = nil
	for _, at := range beside {
		if place := f.ownPlace(at); place != 0 && !slices.Contains(f.way.Beside, place) {
			f.way.Beside = append(f.way.Beside, place)
		}
	}
	if led := f.led(n, k, object); led != nil && led.Has(Offset) {
		f.way.Led = led
	}
}

// table is the variable with static storage at whose start a register of operand k of step n points, or its displacement; nil: none is.
func (f *addresses) table(n, k int) *Declared {
	m := &f.trace.Step(n).Inst.Operands[k].Memory
	starts := []evidence.Addr{evidence.Addr(m.Disp)}
	for _, l := range f.pointers(n, k) {
		starts = append(starts, evidence.Addr(f.trace.Register(n, x86.Reg(l.Num))))
		for d := range f.pointerWay(l, n) {
			if v, known := f.value(d.Part, d.At+1); known && d.Kind == flow.Constant {
				starts = append(starts, evidence.Addr(v))
			}
		}
	}
	for _, start := range starts {
		if v := f.program.Static(start); start >= low && v != nil {
			return v
		}
	}
	return nil
}

// neighbours are the steps that stored the bytes directly before and after some bytes of an object.
func (f *steps) neighbours(object *flow.Object, l flow.Location, n int) (list []int) {
	size := evidence.Addr(max(l.Size, 1))
	for _, addr := range []evidence.Addr{l.Addr - size, l.Addr + size} {
		if at := f.set(object, flow.Memory(addr, int(size)), n); at >= 0 {
			list = append(list, at)
		}
	}
	return list
}

// set is the step that gave bytes of an object the value that they have at step n; -1: they are not in it, or have had none since it was made.
func (f *steps) set(object *flow.Object, l flow.Location, n int) int {
	if l.Addr < object.Addr || l.Addr+evidence.Addr(l.Size) > object.Addr+evidence.Addr(object.Size) {
		return -1
	}
	d := f.trace.Define(l, n)
	switch d.Kind {
	case flow.Copied, flow.Constant, flow.Computed, flow.Input:
		if d.Call != "calloc" {
			return d.At
		}
	}
	return -1
}

// element is how a program names bytes that operand k of step n reads, if a variable with static storage is the pointer
// that led there: variable[index]; empty: none is.
func (f *addresses) element(at flow.Location, n, k int) string {
	addr := at.Addr
	for _, l := range f.pointers(n, k) {
		for d := range f.pointerWay(l, n) {
			if d.Kind != flow.Copied || d.From[0].Space != transfer.Memory {
				continue
			}
			v := f.program.Static(d.From[0].Addr)
			if v == nil || v.typ.Kind() != debuginfo.KindPointer || v.typ.Elem() == nil || v.typ.Elem().Size() <= 0 {
				continue
			}
			start, known := f.value(d.Part, d.At+1)
			if !known || evidence.Addr(start) > addr {
				return ""
			}
			size := evidence.Addr(v.typ.Elem().Size())
			index := (addr - evidence.Addr(start)) / size
			if p := partOf(fmt.Sprintf("%s[%d]", v.Name, index), v.typ.Elem(), int64(addr-evidence.Addr(start)-index*size), at.Size); p != nil {
				return p.Name
			}
			return ""
		}
	}
	return ""
}
