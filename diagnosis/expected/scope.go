package expected

import (
	"cmp"
	"encoding/binary"
	"slices"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
)

// scope are the variables that a place of the program can name.
type scope struct {
	frame *value.Frame
	info  *debuginfo.Info
	pc    uint64 // link-time
	// locals are the parameters and locals, those of inner blocks first.
	locals []debuginfo.Variable
}

// scopeAt is the scope of a level of a frame's inline chain; nil: the debug information has none.
func (in *Input) scopeAt(frame, level int) *scope {
	if frame < 0 {
		return nil
	}
	vf := value.FrameIn(in.Process, in.Thread, in.Frames, frame)
	if vf == nil {
		return nil
	}
	info, err := vf.Module.Debug()
	if err != nil || info == nil {
		return nil
	}
	pc := vf.Module.LinkAddr(in.Frames[frame].LookupPC())
	calls, err := info.CallsAt(pc)
	if err != nil || level >= len(calls) {
		return nil
	}
	locals, err := localsOf(info, calls[level], pc)
	if err != nil {
		return nil
	}
	return &scope{frame: vf, info: info, pc: pc, locals: locals}
}

// localsOf are the parameters and locals of a call at an address, those of inner blocks first.
func localsOf(info *debuginfo.Info, call debuginfo.Call, pc uint64) ([]debuginfo.Variable, error) {
	list, err := info.VariablesAt(call, pc)
	slices.SortStableFunc(list, func(x, y debuginfo.Variable) int { return cmp.Compare(y.Depth, x.Depth) })
	return list, err
}

// object is a part of the program's data: its type, and where it is.
type object struct {
	typ debuginfo.Type
	// addr is its address; it has none in a register, then bytes are its contents. known: one of them is there.
	addr  evidence.Addr
	bytes []byte
	known bool
}

// variable is the object that a name means; false: none has that name. In a method of C++ it may be a member of this.
func (s *scope) variable(name string) (object, bool) {
	for _, v := range s.locals {
		if v.Name == name && v.Type != nil {
			return s.objectOf(v), true
		}
	}
	for _, v := range s.locals {
		if v.Name != "this" || !v.Artificial || v.Type == nil {
			continue
		}
		if o, ok := s.follow(s.objectOf(v), link{arrow: true, member: name}); ok {
			return o, true
		}
	}
	v, ok, err := s.info.GlobalNamed(name, s.pc)
	if err != nil || !ok || v.Type == nil {
		return object{}, false
	}
	return s.objectOf(v), true
}

// objectOf reads where a variable is.
func (s *scope) objectOf(v debuginfo.Variable) object {
	o := object{typ: v.Type}
	const widest = 16
	switch where, err := value.Lives(s.frame, v); {
	case err != nil:
	case where.InMemory:
		o.addr, o.known = where.Addr, true
	case v.Type.Size() <= widest:
		b, err := value.Bytes(s.frame, v, widest)
		o.bytes, o.known = b, err == nil && len(b) > 0
	}
	return o
}

// number is the contents of an object of at most eight bytes; false: they are not known.
func (s *scope) number(o object) (uint64, bool) {
	size := o.typ.Size()
	if !o.known || size < 1 || size > 8 {
		return 0, false
	}
	var b [8]byte
	if o.bytes != nil {
		copy(b[:size], o.bytes)
		return binary.LittleEndian.Uint64(b[:]), len(o.bytes) >= int(size)
	}
	n, err := s.frame.Process.ReadMemory(o.addr, b[:size])
	return binary.LittleEndian.Uint64(b[:]), err == nil && n == int(size)
}

// follow is the object that a link leads to; false: the type has none such.
func (s *scope) follow(o object, l link) (object, bool) {
	if o.typ == nil {
		return object{}, false
	}
	if l.arrow || l.star || l.element && o.typ.Kind() == debuginfo.KindPointer || o.typ.Reference() {
		if o.typ.Kind() != debuginfo.KindPointer || o.typ.Elem() == nil {
			return object{}, false
		}
		target := object{typ: o.typ.Elem()}
		if v, ok := s.number(o); ok {
			target.addr, target.known = evidence.Addr(v), true
		}
		o = target
	}
	switch {
	case l.member != "":
		offset, typ, ok := memberOf(o.typ, l.member, 0)
		if !ok {
			return object{}, false
		}
		return s.part(o, offset, typ), true
	case l.element:
		elem := o.typ
		if o.typ.Kind() == debuginfo.KindArray {
			elem = o.typ.Elem()
		}
		if elem == nil || elem.Size() <= 0 {
			return object{}, false
		}
		part := s.part(o, l.index*elem.Size(), elem)
		part.known = part.known && l.constant
		return part, true
	}
	return o, true
}

// part is the part of an object at an offset.
func (s *scope) part(o object, offset int64, typ debuginfo.Type) object {
	if o.bytes != nil {
		return object{typ: typ}
	}
	return object{typ: typ, addr: o.addr + evidence.Addr(offset), known: o.known}
}

// deepest bounds the classes within classes.
const deepest = 8

// memberOf is the member of a name, which may be that of a base class or of an anonymous part.
func memberOf(t debuginfo.Type, name string, depth int) (offset int64, typ debuginfo.Type, ok bool) {
	if t == nil || depth > deepest {
		return 0, nil, false
	}
	for _, m := range t.Members() {
		switch {
		case !m.Base && m.Name == name && m.BitSize == 0:
			return m.Offset, m.Type, m.Type != nil
		case m.Base || m.Name == "":
			if o, typ, ok := memberOf(m.Type, name, depth+1); ok {
				return m.Offset + o, typ, true
			}
		}
	}
	return 0, nil, false
}

// read is the object that a chain means; false: its names do not fit the types.
func (s *scope) read(c *chain) (object, bool) {
	o, ok := s.variable(c.root)
	for i := 0; ok && i < len(c.links); i++ {
		o, ok = s.follow(o, c.links[i])
	}
	return o, ok && o.typ != nil
}

// describe is the value of an object as the program would write it.
func (s *scope) describe(o object) evidence.Value {
	switch {
	case !o.known:
		return evidence.NoValue("its value is not kept there")
	case o.bytes != nil:
		return value.Scalar(s.frame.Process, o.bytes, o.typ)
	}
	return value.At(s.frame.Process, o.addr, o.typ, value.Options{Shallow: true})
}
