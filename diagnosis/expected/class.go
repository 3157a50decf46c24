package expected

import (
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// Class returns the object whose class is not the one that the failing code expects; nil: none is known. The bad value must have
// been read from that object or its virtual table, or the fault must be in it: other variables may not have been set yet.
func Class(in Input) *evidence.ObjectClass {
	if !in.usable() || in.Failure.Fault == nil {
		return nil
	}
	if in.Failure.Fault.Access == evidence.Execute {
		return in.calledClass()
	}
	frame, level := in.siteFrame()
	s := in.scopeAt(frame, level)
	if frame != 0 || s == nil {
		return nil
	}
	places := []evidence.Addr{in.Failure.Fault.Addr}
	if in.Blame != nil && in.Blame.Cell != nil {
		places = append(places, *in.Blame.Cell)
	}
	return in.misread(s, func(start, end evidence.Addr) bool {
		return slices.ContainsFunc(places, func(a evidence.Addr) bool { return a >= start && a < end })
	})
}

// calledClass is for a call through a virtual table that led to no code.
func (in *Input) calledClass() *evidence.ObjectClass {
	b := in.Blame
	this, known := in.Frames[0].Registers.Get(image.RDI)
	if !known || b == nil || b.Cell == nil || in.Failure.Arrival == evidence.ArrivedByReturn {
		return nil
	}
	d := dynamicOf(in.Process, evidence.Addr(this))
	if d == nil || *b.Cell < d.vptr || (*b.Cell-d.vptr)%8 != 0 || *b.Cell-d.vptr >= 8*mostSlots {
		return nil
	}
	slot := int(*b.Cell-d.vptr) / 8
	if target, err := image.Uint64(in.Process, *b.Cell); err != nil || evidence.Addr(target) != in.Failure.Fault.Addr {
		return nil
	}
	var out *evidence.ObjectClass
	site := in.Failure.Site
	frame, level := in.siteFrame()
	if s := in.scopeAt(frame, level); s != nil && frame == 1 && in.Failure.Arrival == evidence.ArrivedByCall {
		out = in.misread(s, func(start, end evidence.Addr) bool { return evidence.Addr(this) >= start && evidence.Addr(this) < end })
	} else {
		site = &b.Loaded
	}
	if out == nil && d.slots > 0 && slot >= d.slots {
		out = &evidence.ObjectClass{Object: evidence.Addr(this), Offset: d.offset, Class: d.name, Proof: evidence.FromCore}
	}
	if out == nil {
		return nil
	}
	out.Slot, out.Slots = &slot, d.slots
	if v := in.virtualAt(site, slot, d); v != nil {
		out.Called = v.Name
		if out.Expected == "" && !d.isOne(v.Class.Name) {
			out.Expected, out.Proof = v.Class.Name, evidence.Inferred
			out.Base = isBase(d, &v.Class)
		}
	}
	return out
}

// isBase reports whether the object's class is a base of another.
func isBase(d *dynamic, c *debuginfo.Class) bool {
	return slices.ContainsFunc(c.Ancestors, func(a string) bool { return sameClass(a, d.name) })
}

// misread is the object of a local pointer, with an extent that is wanted, that is not of the class which the pointer's type
// tells.
func (in *Input) misread(s *scope, wanted func(start, end evidence.Addr) bool) *evidence.ObjectClass {
	for _, v := range s.locals {
		if v.Type == nil || v.Type.Kind() != debuginfo.KindPointer || v.Type.Elem() == nil {
			continue
		}
		class, ok := debuginfo.ClassOf(v.Type.Elem())
		size := v.Type.Elem().Size()
		if !ok || !class.Polymorphic || !class.Complete || size <= 0 {
			continue
		}
		n, known := s.number(s.objectOf(v))
		at := evidence.Addr(n)
		if !known || !wanted(at, at+evidence.Addr(size)) {
			continue
		}
		d := dynamicOf(in.Process, at)
		if d == nil || d.isOne(class.Name) {
			continue
		}
		base := isBase(d, &class)
		if base && in.constructing() {
			continue
		}
		return &evidence.ObjectClass{Object: at, Offset: d.offset, Variable: v.Name, Class: d.name, Expected: class.Name, Base: base, Proof: evidence.FromCore}
	}
	return nil
}

// constructing reports whether a constructor or a destructor is on the thread's stack: the object may be of a base class while
// these run.
func (in *Input) constructing() bool {
	for i := range in.Frames {
		for _, c := range in.Frames[i].Calls {
			if isStructor(c.Site.Function) {
				return true
			}
		}
	}
	return false
}

// isStructor reports whether a function's name is that of a constructor or a destructor.
func isStructor(function string) bool {
	parts := strings.Split(plainClass(evidence.ShortName(function)), "::")
	last := parts[len(parts)-1]
	return strings.HasPrefix(last, "~") || len(parts) > 1 && last == parts[len(parts)-2]
}

// virtualAt is the virtual function that the code at a place calls, by its slot and by its name in the line; nil: it is not
// known, or several classes declare one that do not derive from one of them.
func (in *Input) virtualAt(site *evidence.Site, slot int, d *dynamic) *debuginfo.Virtual {
	m := in.Process.ModuleAt(site.PC)
	if m == nil {
		return nil
	}
	info, err := m.Debug()
	if err != nil || info == nil {
		return nil
	}
	list, err := info.VirtualsAt(m.LinkAddr(site.PC)-1, slot)
	if err != nil {
		return nil
	}
	code, _ := in.code(site)
	list = slices.DeleteFunc(list, func(v debuginfo.Virtual) bool { return !calls(code, site.Line, v.Name) })
	for i := range list {
		introduces := !slices.ContainsFunc(list, func(other debuginfo.Virtual) bool {
			return !sameClass(other.Class.Name, list[i].Class.Name) && (other.Name != list[i].Name ||
				!slices.ContainsFunc(other.Class.Ancestors, func(a string) bool { return sameClass(a, list[i].Class.Name) }))
		})
		if introduces {
			return &list[i]
		}
	}
	return nil
}

// calls reports whether a line calls a function of a name.
func calls(code []token, line int, name string) bool {
	for i := range code {
		if code[i].line == line && code[i].text == name && i+1 < len(code) && code[i+1].text == "(" {
			return true
		}
	}
	return false
}
