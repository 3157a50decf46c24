package verdict

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

// typedPointer is one that the program has.
type typedPointer struct {
	to evidence.Addr
	// typ is of what it says to be there; nil: not known.
	typ debuginfo.Type
}

// heapTargets finds what to watch from the pointers that the failed process has, on the heap above all.
type heapTargets struct {
	in       *Input
	rec      *record.Recording
	progress *progress
}

// pointers are those in the failing thread's frames, by themselves or in structures.
func (h *heapTargets) pointers() []typedPointer {
	var list []typedPointer
	var add func(variables []evidence.Variable)
	add = func(variables []evidence.Variable) {
		for i := range variables {
			v := &variables[i]
			if a := v.Value.Address; a != nil && *a != 0 {
				list = append(list, typedPointer{*a, pointee(h.in.Process, v.Type)})
			} else {
				add(v.Value.Fields)
			}
		}
	}
	for _, g := range h.in.Case.Stacks {
		if !g.Failing {
			continue
		}
		for i := range g.Stack.Frames {
			add(slices.Concat(g.Stack.Frames[i].Args, g.Stack.Frames[i].Locals))
		}
	}
	return list
}

// pointee is what a pointer of a type, as the program writes that, points to; nil: that
// is not known.
func pointee(p *image.Process, name string) debuginfo.Type {
	name = strings.TrimSpace(name)
	for _, qualifier := range []string{"const", "volatile", "restrict"} {
		name = strings.TrimSpace(strings.TrimSuffix(name, qualifier))
	}
	name, pointer := strings.CutSuffix(name, "*")
	if !pointer {
		name, pointer = strings.CutSuffix(name, "&")
	}
	name = strings.TrimSpace(name)
	for _, qualifier := range []string{"const ", "volatile ", "_Atomic "} {
		name = strings.TrimPrefix(name, qualifier)
	}
	if name == "" || name == "void" || strings.HasSuffix(name, "*") {
		return nil
	}
	if !pointer {
		return held(watchtrace.TypeNamed(p, name))
	}
	if t := watchtrace.TypeNamed(p, name); t != nil && t.Size() > 0 {
		return t
	}
	return nil
}

// held is what the one pointer points to that a type is, as std::unique_ptr and what that
// is made of; nil: it is no such type.
func held(t debuginfo.Type) debuginfo.Type {
	if t == nil || t.Size() != wordSize {
		return nil
	}
	if _, leaf, ok := value.Path(t, 0, wordSize); ok && leaf.Kind() == debuginfo.KindPointer {
		return leaf.Elem()
	}
	return nil
}

// Bounds of the heap memory that is looked at.
const (
	mostObjects = 8
	mostParts   = 12 // of an object
)

// pointedFrom are the parts of the heap objects that targets, and variables of
// the failing thread's frames, point to, and of those that these point to.
func (h *heapTargets) pointedFrom(from []watchtrace.Target) []watchtrace.Target {
	if h.in.Object == nil {
		return nil
	}
	pointers := h.pointers()
	for _, t := range from {
		if t.Size == wordSize {
			pointers = append(pointers, typedPointer{pointerAt(h.in.Process, t.Addr), pointee(h.in.Process, t.Type)})
		}
	}
	var list []watchtrace.Target
	seen := map[evidence.Addr]bool{0: true}
	for i := 0; i < len(pointers) && len(seen) <= mostObjects; i++ {
		p := pointers[i]
		o := h.in.Object(p.to)
		if o == nil || seen[o.Addr] || p.to < o.Addr || p.to >= o.Addr+evidence.Addr(o.Size) {
			continue
		}
		// Another pointer may know what the object is.
		for j := i + 1; j < len(pointers) && p.typ == nil; j++ {
			if q := pointers[j]; q.to == p.to {
				p = q
			}
		}
		seen[o.Addr] = true
		for _, part := range partsOf(o, p) {
			list = append(list, part.target)
			if part.target.Size == wordSize {
				pointers = append(pointers, typedPointer{pointerAt(h.in.Process, part.target.Addr), part.pointee})
			}
		}
	}
	return list
}

// tidy reports that the process came to its end by itself and that none of the targets is
// on the heap: then it has freed what its threads shared there, and no pointer leads to it.
func (h *heapTargets) tidy(targets []watchtrace.Target) bool {
	if o := h.rec.Manifest.Outcome.Kind; o != record.OutcomeExit && o != record.OutcomePassed || h.in.Object == nil {
		return false
	}
	return !slices.ContainsFunc(targets, func(t watchtrace.Target) bool { return h.in.Object(t.Addr) != nil })
}

// allocated are the parts of the heap objects that the program's own lines allocated,
// freed ones that are in memory still among them.
func (h *heapTargets) allocated() []watchtrace.Target {
	heap, err := watchtrace.NewAllocations(h.in.Process)
	if err != nil {
		return nil // the program ran without the agent
	}
	objects, err := heap.Own()
	if err != nil {
		h.progress.failedPart(err)
		return nil
	}
	if n := len(objects); n > mostObjects {
		h.progress.limit(evidence.Limit{Code: evidence.LimitHeapObjects, Count: mostObjects, Of: uint64(n)})
		objects = objects[:mostObjects]
	}
	var list []watchtrace.Target
	for _, addr := range objects {
		if o := h.in.Object(addr); o != nil {
			for _, part := range partsOf(o, typedPointer{to: addr}) {
				list = append(list, part.target)
			}
		}
	}
	return list
}

// part is a member or element of an object, or some bytes of which nothing is known.
type part struct {
	target  watchtrace.Target
	pointee debuginfo.Type // of one that is a pointer; nil: not known
}

// partsOf cuts an object into what the type of a pointer to it says, and into words where
// that says nothing. Two members that share a word are two variables: what is done to the
// one says nothing about the other.
func partsOf(o *evidence.HeapObject, p typedPointer) []part {
	group, size := objectName(o), int64(o.Size)
	object := objectIdentity(o)
	var list []part
	for at := int64(0); at < size && len(list) < mostParts; {
		t := watchtrace.Target{Addr: o.Addr + evidence.Addr(at), Group: group}
		name, leaf, typed := memberOf(p.typ, at-int64(p.to-o.Addr), size-int64(p.to-o.Addr))
		x := part{}
		switch {
		case typed && leaf == nil:
			at++ // padding
			continue
		case typed && leaf.Size() > 0 && leaf.Size() <= wordSize && !narrow(name, leaf):
			t.Name, t.Type, t.Size = group+name, leaf.Name(), int(leaf.Size())
			t.Identity = object.At(name)
			if leaf.Kind() == debuginfo.KindPointer {
				x.pointee = leaf.Elem()
			}
		default:
			offset := fmt.Sprintf("+%#x", at)
			t.Name, t.Size, t.Identity = group+offset, int(min(wordSize-at%wordSize, size-at)), object.At(offset)
		}
		x.target = t
		list, at = append(list, x), at+int64(t.Size)
	}
	return list
}

// narrow reports whether a part is one of many small elements.
func narrow(name string, leaf debuginfo.Type) bool {
	const least = 4
	return strings.HasSuffix(name, "]") && leaf.Size() < least
}

// memberOf is the part at an offset of memory of a size that has one value of a type, or
// several in a row; its name goes behind that of a pointer to the first. What the type
// says nothing of is not typed; what is no part's beginning has no leaf.
func memberOf(t debuginfo.Type, offset, size int64) (name string, leaf debuginfo.Type, typed bool) {
	if t == nil || t.Size() <= 0 || offset < 0 {
		return "", nil, false
	}
	n, within := offset/t.Size(), offset%t.Size()
	several := size%t.Size() == 0 && size > t.Size()
	if n > 0 && !several || (n+1)*t.Size() > size {
		return "", nil, false
	}
	path, leaf, ok := value.Path(t, within, 0)
	if !ok {
		return "", nil, true
	}
	if before, _, ok := value.Path(t, within-1, 0); within > 0 && ok && before == path {
		return "", nil, true
	}
	if several {
		return fmt.Sprintf("[%d]%s", n, path), leaf, true
	}
	if member, is := strings.CutPrefix(path, "."); is {
		return "->" + member, leaf, true
	}
	return path, leaf, true
}

// pointerAt is what the dead process has at an address; 0: it is not known, which
// is no object's address.
func pointerAt(p *image.Process, addr evidence.Addr) evidence.Addr {
	value, _ := wordAt(p, addr, wordSize)
	return evidence.Addr(value)
}

// objectName is where an object was allocated. It has its address, which is the
// same in other runs if they allocated the same before.
func objectName(o *evidence.HeapObject) string {
	if o.Allocated == nil || o.Allocated.Site == nil || o.Allocated.Site.File == "" {
		return fmt.Sprintf("heap object %v", o.Addr)
	}
	return fmt.Sprintf("%s at %s:%d (%v)", cmp.Or(o.API, "malloc"), path.Base(o.Allocated.Site.File), o.Allocated.Site.Line, o.Addr)
}

// objectIdentity is the object as other runs have it: by its allocation.
func objectIdentity(o *evidence.HeapObject) evidence.Identity {
	i := evidence.Identity{Kind: evidence.IdentityHeap, Name: cmp.Or(o.API, "malloc"), Addr: o.Addr}
	if o.Allocated != nil {
		i.Site = o.Allocated.Site
	}
	return i
}
