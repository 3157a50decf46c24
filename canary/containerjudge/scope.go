package containerjudge

import (
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/unwind"
	"diagnose/image/value"
)

// Bounds of the variables that are looked at.
const (
	mostFrames  = 8    // from the program's own innermost one outward, and as many inside of it
	mostInner   = 24   // of the library, that refused something
	mostObjects = 4096 // structures, members among them
	mostFound   = 256  // containers, and iterators
	deepest     = 6    // members, pointers among them
	mostGlobals = 512
)

// container is a container of the program.
type container struct {
	value.Container
	name string
	typ  debuginfo.Type
}

func (c *container) facts() *evidence.Container {
	return &evidence.Container{Name: c.name, Type: strings.TrimPrefix(c.typ.Name(), "const "), Kind: c.Kind, Addr: c.Addr, Size: c.Size}
}

// pastEnd reports whether an address is in the element that would be at end(), and certainly in the container's own
// memory: of a deque, or of a vector that has memory for more.
func (c *container) pastEnd(at evidence.Addr) bool {
	if c.End == 0 || c.Elem == nil || at < c.End || at >= c.End+evidence.Addr(c.Elem.Size()) {
		return false
	}
	return c.Kind == evidence.ContainerDeque || c.Kind == evidence.ContainerVector && at < c.Storage
}

// iterator is an iterator of the program.
type iterator struct {
	value.Iterator
	name, typ string
	// register has it; empty: it is in memory.
	register string
}

func (i *iterator) facts() *evidence.ContainerIterator {
	return &evidence.ContainerIterator{Name: i.name, Type: i.typ, Position: i.Position}
}

// number is an integer variable.
type number struct {
	name  string
	value int64
}

// extent is the memory of a variable.
type extent struct{ start, end evidence.Addr }

// scope has the containers and iterators that the frames of a thread can name.
type scope struct {
	process    *image.Process
	containers []container
	iterators  []iterator
	numbers    []number
	plain      []extent // the other variables, and what pointers of them point to
	objects    int
	seen       map[seenObject]bool
}

type seenObject struct {
	addr evidence.Addr
	typ  string
}

// newScope reads the variables of the frames, the innermost first, and the globals of their units.
func newScope(in *Input) *scope {
	s := &scope{process: in.Process, seen: map[seenObject]bool{}}
	own := max(0, slices.IndexFunc(in.Frames, ownCode))
	first, last := max(0, own-mostFrames), min(len(in.Frames), own+mostFrames)
	for i := first; i < last; i++ {
		s.addFrame(in, i)
	}
	for i := first; i < last; i++ {
		s.addGlobals(in, i)
	}
	return s
}

// ownCode reports whether a frame is of the program's own code, at one of its inlined levels at least.
func ownCode(f unwind.Frame) bool {
	return slices.ContainsFunc(f.Calls, func(c image.SymbolizedCall) bool { return !image.LibraryCode(&c.Site) })
}

// addFrame adds the variables of a frame and of the functions inlined there.
func (s *scope) addFrame(in *Input, i int) {
	f := value.FrameIn(in.Process, in.Thread, in.Frames, i)
	if f == nil {
		return
	}
	info, err := f.Module.Debug()
	if err != nil || info == nil {
		return
	}
	pc := f.Module.LinkAddr(in.Frames[i].LookupPC())
	calls, err := info.CallsAt(pc)
	if err != nil {
		return
	}
	for level, call := range calls {
		variables, err := info.VariablesAt(call, pc)
		if err != nil {
			continue
		}
		own := level >= len(in.Frames[i].Calls) || !image.LibraryCode(&in.Frames[i].Calls[level].Site)
		for _, v := range variables {
			s.addVariable(f, &v, own)
		}
	}
}

func (s *scope) addGlobals(in *Input, i int) {
	f := value.FrameIn(in.Process, in.Thread, in.Frames, i)
	if f == nil || image.RuntimeModule(f.Module.Path) {
		return
	}
	info, err := f.Module.Debug()
	if err != nil || info == nil {
		return
	}
	list, err := info.GlobalsAt(f.Module.LinkAddr(in.Frames[i].LookupPC()))
	if err != nil {
		return
	}
	for _, v := range list[:min(len(list), mostGlobals)] {
		s.addVariable(f, &v, true)
	}
}

// addVariable adds a variable. Those of the library's own functions give no names.
func (s *scope) addVariable(f *value.Frame, v *debuginfo.Variable, own bool) {
	if v.Type == nil {
		return
	}
	name := v.Name
	if !own {
		name = ""
	}
	if i, is, err := value.IteratorOf(f, *v); is {
		if err == nil && len(s.iterators) < mostFound {
			register := ""
			if where, err := value.Lives(f, *v); err == nil && where.InRegister {
				register = where.Register.String()
			}
			s.iterators = append(s.iterators, iterator{i, name, v.Type.Name(), register})
		}
		return
	}
	switch v.Type.Kind() {
	case debuginfo.KindInt, debuginfo.KindUint:
		if n, ok := value.Number(f, *v); ok && own {
			s.numbers = append(s.numbers, number{name, n})
		}
		return
	case debuginfo.KindPointer:
		if at, ok := value.Number(f, *v); ok {
			s.addTarget(name, evidence.Addr(at), v.Type, 0)
		}
	}
	where, err := value.Lives(f, *v)
	if err != nil || !where.InMemory || v.Type.Size() <= 0 {
		return
	}
	s.addObject(name, where.Addr, v.Type, 0)
	s.addPlain(where.Addr, v.Type)
}

// addPlain adds the memory of an object that is no container.
func (s *scope) addPlain(at evidence.Addr, t debuginfo.Type) {
	if slices.ContainsFunc(s.containers, func(c container) bool { return c.Addr == at && c.typ.Size() == t.Size() }) {
		return
	}
	s.plain = append(s.plain, extent{at, at + evidence.Addr(t.Size())})
}

// addTarget adds what a pointer or reference points to.
func (s *scope) addTarget(name string, at evidence.Addr, pointer debuginfo.Type, depth int) {
	t := pointer.Elem()
	if at == 0 || t == nil || t.Kind() != debuginfo.KindStruct {
		return
	}
	if name != "" && !pointer.Reference() {
		name = "*" + name
	}
	s.addObject(name, at, t, depth+1)
	s.addPlain(at, t)
}

// addObject adds a container, or the containers that a structure has. The first name of an object is kept, and a name
// counts more than none.
func (s *scope) addObject(name string, at evidence.Addr, t debuginfo.Type, depth int) {
	if t == nil || t.Kind() != debuginfo.KindStruct || depth > deepest || s.objects >= mostObjects {
		return
	}
	s.objects++
	key := seenObject{at, t.Name()}
	if s.seen[key] {
		s.rename(name, at)
		return
	}
	s.seen[key] = true
	c, err := value.ContainerAt(s.process, at, t)
	if err != nil {
		return // it was not made yet, or is destroyed
	}
	if c != nil {
		if !s.rename(name, at) && len(s.containers) < mostFound {
			s.containers = append(s.containers, container{*c, name, t})
		}
		return
	}
	members := t.Members()
	for i := range members[:min(len(members), 64)] {
		m := &members[i]
		if m.Type == nil || m.BitSize != 0 || m.Offset < 0 {
			continue
		}
		inner, part := at+evidence.Addr(m.Offset), memberName(name, m)
		if m.Type.Kind() != debuginfo.KindPointer {
			s.addObject(part, inner, m.Type, depth+1)
			continue
		}
		if target, err := image.Uint64(s.process, inner); err == nil && m.Type.Size() == 8 && depth+1 < deepest/2 {
			s.addTarget(part, evidence.Addr(target), m.Type, depth+1)
		}
	}
}

// rename names a container that has no name yet; false: there is none at the address.
func (s *scope) rename(name string, at evidence.Addr) bool {
	k := slices.IndexFunc(s.containers, func(c container) bool { return c.Addr == at })
	if k < 0 {
		return false
	}
	if s.containers[k].name == "" {
		s.containers[k].name = name
	}
	return true
}

// memberName is the expression for a member of an object; empty: the object has no name.
func memberName(name string, m *debuginfo.Member) string {
	switch {
	case name == "" || m.Base || m.Name == "":
		return name
	case name[0] == '*':
		return name[1:] + "->" + m.Name
	}
	return name + "." + m.Name
}

// containerAt is the container of the scope at an address, or the one that is read there by its type; nil: there is
// none.
func (s *scope) containerAt(at evidence.Addr, t debuginfo.Type) *container {
	find := func() *container {
		k := slices.IndexFunc(s.containers, func(c container) bool { return c.Addr == at })
		if k < 0 {
			return nil
		}
		return &s.containers[k]
	}
	if c := find(); c != nil || t == nil {
		return c
	}
	s.objects = min(s.objects, mostObjects-1)
	s.addObject("", at, t, 0)
	return find()
}

// iteratorAt is an iterator of the program with a position; nil: there is none.
func (s *scope) iteratorAt(position evidence.Addr) *evidence.ContainerIterator {
	for k := range s.iterators {
		if i := &s.iterators[k]; i.Position == position && i.name != "" {
			return i.facts()
		}
	}
	return nil
}

// variableOf is the variable with the value of an index; empty: there is none, there are several, or the index is so
// small that others may have its value by chance.
func (s *scope) variableOf(index int64) string {
	const small = 64
	if index >= -1 && index < small {
		return ""
	}
	name := ""
	for _, n := range s.numbers {
		switch {
		case n.value != index || name == n.name:
		case name != "":
			return ""
		default:
			name = n.name
		}
	}
	return name
}

// covered reports whether a variable of the program is at an address.
func (s *scope) covered(at evidence.Addr) bool {
	return slices.ContainsFunc(s.plain, func(e extent) bool { return at >= e.start && at < e.end })
}
