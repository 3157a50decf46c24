package provenance

import (
	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// overfilled ends the way at a call of a function like memcpy by which bytes got their value, if the call was handed the address of an array
// in a struct and a size that leads past the array, to the bytes.
func (f *follower) overfilled(d flow.Definition) bool {
	if d.Part.Space != transfer.Memory || d.At < 0 {
		return false
	}
	entered := f.sized(d.At)
	if entered < 0 {
		return false
	}
	m := f.destination(entered)
	if m == nil || d.Part.Addr < m.end() {
		return false
	}
	f.outsideMember(m, d.At, d.Part.Addr, true)
	f.ledBy(flow.Register(f.trace.Step(d.At).Thread, x86.RDX, 8), entered)
	return true
}

// destination is the array in a struct whose address the program's own code made and handed over as the first argument of a function that was
// entered at a step; nil: it made no such address. That of the struct's first member may be meant as the struct's.
func (f *addresses) destination(entered int) *Declared {
	const most = 8 // copies
	addr := evidence.Addr(f.trace.Register(entered, x86.RDI))
	copies := 0
	for d := range f.pointerWay(flow.Register(f.trace.Step(entered).Thread, x86.RDI, 8), entered) {
		if d.Kind == flow.Copied && !ofStackPointer(d) {
			if copies++; copies == most {
				return nil
			}
			continue
		}
		from := f.operands(d)
		if d.Kind != flow.Computed || len(from) != 1 || !f.program.Own(f.trace.Step(d.At).PC) || !increments(f.trace.Step(d.At).Inst) {
			return nil
		}
		base, known := f.value(from[0], d.At)
		if !known || evidence.Addr(base) >= addr {
			return nil
		}
		return f.program.Field(f.scopePoint(d.At), evidence.Addr(base), addr)
	}
	return nil
}

// Field implements Program.
func (i *Image) Field(at *ScopePoint, base, addr evidence.Addr) (found *Declared) {
	field := func(name string, t debuginfo.Type, start evidence.Addr) bool {
		offset := int64(addr - start)
		if t == nil || t.Kind() != debuginfo.KindStruct || addr <= start || offset >= t.Size() {
			return false
		}
		member, array := arrayAt(t, offset, 0)
		if array == nil || offset+array.Size() == t.Size() {
			return false
		}
		found = &Declared{Name: name + member, Addr: addr, Size: uint64(array.Size()), Member: true}
		return true
	}
	for _, v := range i.variablesAt(at) {
		if v.Type.Kind() == debuginfo.KindPointer {
			if v.Type.Elem() != nil && v.leads(base, 0) && field(v.Name+"->", v.Type.Elem(), base) {
				return found
			}
			continue
		}
		if l, err := value.Lives(v.frame, v.Variable); err == nil && l.InMemory && field(v.Name+".", v.Type, l.Addr) {
			return found
		}
	}
	return nil
}
