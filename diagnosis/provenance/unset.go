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
	if !f.partlySet(object, l, n) {
		return
	}
	f.way.Beside = f.neighbours(object, l, n)
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

// partlySet reports whether the start of an object has a value at step n, or bytes beside some of its bytes.
func (f *addresses) partlySet(object *flow.Object, l flow.Location, n int) bool {
	size := evidence.Addr(max(l.Size, 1))
	return slices.ContainsFunc([]evidence.Addr{object.Addr, l.Addr - size, l.Addr + size}, func(addr evidence.Addr) bool {
		return addr != l.Addr && f.set(object, flow.Memory(addr, int(size)), n) >= 0
	})
}

// neighbours are the program's own places that stored the bytes directly before and after some bytes of an object.
func (f *addresses) neighbours(object *flow.Object, l flow.Location, n int) (list []evidence.Addr) {
	size := evidence.Addr(max(l.Size, 1))
	for _, addr := range []evidence.Addr{l.Addr - size, l.Addr + size} {
		at := f.set(object, flow.Memory(addr, int(size)), n)
		if at < 0 {
			continue
		}
		if place := f.ownPlace(at); place != 0 && !slices.Contains(list, place) {
			list = append(list, place)
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
