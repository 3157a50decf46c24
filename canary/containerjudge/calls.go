package containerjudge

import (
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
	"diagnose/staticscan"
)

// isStandard reports whether a function is of the C++ standard library.
func isStandard(function string) bool {
	return image.LibraryCode(&evidence.Site{Function: function})
}

// member is the name of a member function without its class and template arguments: "operator[]", "front".
func member(function string) string {
	name := evidence.ShortName(function)
	if i := strings.LastIndex(name, "::operator"); i >= 0 {
		return name[i+len("::"):]
	}
	depth := 0
	for i := len(name) - 1; i > 0; i-- {
		switch name[i] {
		case '>':
			depth++
		case '<':
			if depth--; depth == 0 {
				name = name[:i]
			}
		case ':':
			if depth == 0 {
				return name[i+1:]
			}
		}
	}
	return name
}

// given is for the address of an element that a member function of a container or an iterator returned; nil: the
// element is there, or it is not known.
func (j *judge) given(call *staticscan.Returned, element *evidence.Addr) *evidence.ContainerUse {
	if !isStandard(call.Function) || call.Arguments[0] == nil {
		return nil
	}
	t := j.receiver(call.Entry)
	name, this := member(call.Function), evidence.Addr(*call.Arguments[0])
	if i, is, err := value.IteratorAt(j.Process, this, t); is {
		if err != nil || name != "operator->" && name != "operator*" || !j.leadsTo(i, element) {
			return nil
		}
		found := &iterator{Iterator: i}
		found.name, found.typ = j.nameIterator(i, t)
		return j.through(found, name)
	}
	c := j.containerAt(this, t)
	if c == nil {
		return nil
	}
	var index *int64
	if call.Arguments[1] != nil {
		v := int64(*call.Arguments[1])
		index = &v
	}
	if u := j.asked(c, name, index, call.Names[1]); u != nil {
		return u
	}
	if found := name == "find" || name == "lower_bound" || name == "upper_bound"; found && j.foundNothing(c, element) {
		return &evidence.ContainerUse{Misuse: evidence.MisuseEnd, Container: c.facts(), Function: name}
	}
	return nil
}

// foundNothing reports whether a search in a container, which returned an iterator, returned end(): of a hash table a
// null pointer, of a tree an iterator from where the bad pointer can be loaded, and from no element.
func (j *judge) foundNothing(c *container, result *evidence.Addr) bool {
	switch {
	case c.Kind == evidence.ContainerHash:
		return result != nil && *result == 0
	case c.Kind != evidence.ContainerTree:
		return false
	case result != nil:
		return *result == c.Sentinel
	case len(j.Blame.Loads) == 0 || j.Blame.Value == nil:
		return false
	}
	offset, bad := evidence.Addr(j.Blame.Loads[0].Offset), uint64(*j.Blame.Value)
	v, err := image.Uint64(j.Process, c.Sentinel+offset)
	if err != nil || v != bad {
		return false
	}
	for _, node := range c.Nodes() {
		if v, err := image.Uint64(j.Process, node+offset); err != nil || v == bad {
			return false
		}
	}
	return c.Size == 0 || len(c.Nodes()) > 0
}

// nameIterator is the variable that an iterator is, and its type.
func (j *judge) nameIterator(i value.Iterator, t debuginfo.Type) (name, typ string) {
	for k := range j.iterators {
		if x := &j.iterators[k]; x.Position == i.Position && x.Kind == i.Kind && x.name != "" {
			return x.name, x.typ
		}
	}
	return "", t.Name()
}

// elements are the distances of the elements from the start of their nodes (libstdc++: aligned_buffer.h; libc++: the
// element follows the links, and a tree's colour).
var elements = map[evidence.ContainerKind][]evidence.Addr{
	evidence.ContainerVector: {0}, evidence.ContainerDeque: {0}, evidence.ContainerList: {16},
	evidence.ContainerTree: {28, 32}, evidence.ContainerHash: {8, 16},
}

// leadsTo reports whether an iterator still has the position that the failure came from: from which the element's
// address was computed or, if that address is not known any more, from where the bad pointer was loaded.
func (j *judge) leadsTo(i value.Iterator, element *evidence.Addr) bool {
	for _, distance := range elements[i.Kind] {
		at := i.Position + distance
		if element != nil {
			if *element == at {
				return true
			}
			continue
		}
		if len(j.Blame.Loads) == 0 || j.Blame.Value == nil {
			return false
		}
		v, err := image.Uint64(j.Process, at+evidence.Addr(j.Blame.Loads[0].Offset))
		if err == nil && evidence.Addr(v) == *j.Blame.Value {
			return true
		}
	}
	return false
}

// asked is the use of an element that a member function of a container was asked for; nil: it is there.
func (j *judge) asked(c *container, function string, index *int64, name string) *evidence.ContainerUse {
	switch function {
	case "operator[]", "at":
		indexed := c.Kind == evidence.ContainerVector || c.Kind == evidence.ContainerString || c.Kind == evidence.ContainerDeque
		if index == nil || !indexed {
			return nil
		}
		return j.index(c, *index, name, function)
	case "front", "back", "pop_back", "pop_front", "top", "pop":
		if c.Size == 0 {
			return emptied(c, function)
		}
	}
	return nil
}

// receiver is the type of the object that the member function at an address is called for; nil: it is not known.
func (j *judge) receiver(entry evidence.Addr) debuginfo.Type {
	m := j.Process.ModuleAt(entry)
	if m == nil {
		return nil
	}
	info, err := m.Debug()
	if err != nil || info == nil {
		return nil
	}
	pc := m.LinkAddr(entry)
	calls, err := info.CallsAt(pc)
	if err != nil || len(calls) == 0 {
		return nil
	}
	variables, err := info.VariablesAt(calls[len(calls)-1], pc)
	if err != nil {
		return nil
	}
	return thisOf(variables)
}

// thisOf is the type of the object that "this" points to; nil: there is none.
func thisOf(variables []debuginfo.Variable) debuginfo.Type {
	for i := range variables {
		if v := &variables[i]; v.Parameter && v.Name == "this" && v.Type != nil && v.Type.Kind() == debuginfo.KindPointer {
			return v.Type.Elem()
		}
	}
	return nil
}

// refused is for a failure that the library itself raised: a check of its assertions, or an exception of at(). The
// frame of the member function has the container and the index.
func (j *judge) refused() *evidence.ContainerUse {
	for i := range j.Frames[:min(len(j.Frames), mostInner)] {
		f := value.FrameIn(j.Process, j.Thread, j.Frames, i)
		if f == nil {
			continue
		}
		info, err := f.Module.Debug()
		if err != nil || info == nil {
			continue
		}
		pc := f.Module.LinkAddr(j.Frames[i].LookupPC())
		calls, err := info.CallsAt(pc)
		if err != nil || len(calls) != len(j.Frames[i].Calls) {
			continue
		}
		for level, call := range calls {
			site := &j.Frames[i].Calls[level].Site
			if !image.LibraryCode(site) {
				return nil // the check was not the library's
			}
			variables, err := info.VariablesAt(call, pc)
			if err != nil {
				continue
			}
			if u := j.refusedBy(f, member(site.Function), variables); u != nil {
				return u
			}
		}
	}
	return nil
}

// refusedBy is the use that a member function of a container refused; nil: it is not known.
func (j *judge) refusedBy(f *value.Frame, function string, variables []debuginfo.Variable) *evidence.ContainerUse {
	t := thisOf(variables)
	if t == nil {
		return nil
	}
	var at evidence.Addr
	var index *int64
	for i := range variables {
		v := &variables[i]
		if !v.Parameter || v.Type == nil {
			continue
		}
		n, ok := value.Number(f, *v)
		switch {
		case !ok:
		case v.Name == "this":
			at = evidence.Addr(n)
		case index == nil && (v.Type.Kind() == debuginfo.KindInt || v.Type.Kind() == debuginfo.KindUint):
			index = &n
		}
	}
	if at == 0 {
		return nil
	}
	c := j.containerAt(at, t)
	if c == nil {
		return nil
	}
	return j.asked(c, function, index, "")
}
