package mallocsum

import (
	"cmp"
	"slices"

	"diagnose/evidence"
)

// leastLarge and mostLarge bound the number of the largest objects listed.
const (
	leastLarge = 20
	mostLarge  = 1000
)

// List lists the largest objects, and what points to them.
func (s *Summary) List() error {
	n := s.Most
	if n == 0 {
		n = leastLarge
	}
	for _, i := range s.largest(min(n, mostLarge)) {
		o := &s.table.objects[i]
		x := evidence.MallocObject{Addr: o.start, Size: o.size, Type: s.typing.kinds[o.kind], Mapped: o.mapped}
		if o.reach != unreached {
			s.describeHolder(&x, o)
		}
		s.Out.Malloc.Largest = append(s.Out.Malloc.Largest, x)
	}
	return nil
}

// largest are the indexes of the n largest objects, the largest first.
func (s *Summary) largest(n int) []int {
	bySize := func(x, y int) int {
		return cmp.Or(cmp.Compare(s.table.objects[y].size, s.table.objects[x].size), cmp.Compare(x, y))
	}
	var list []int
	for i := range s.table.objects {
		list = append(list, i)
		if len(list) >= 2*n {
			slices.SortFunc(list, bySize)
			list = list[:n]
		}
	}
	slices.SortFunc(list, bySize)
	return list[:min(n, len(list))]
}

// describeHolder says what points to an object: where it was reached first.
func (s *Summary) describeHolder(x *evidence.MallocObject, o *object) {
	h := &evidence.Holder{Kind: evidence.HolderRegister, Address: o.from}
	x.Holder = h
	if o.from == 0 {
		return
	}
	if i := s.table.at(o.from); i >= 0 {
		by := &s.table.objects[i]
		h.Kind, h.Object, h.ObjectSize, h.ObjectOffset = evidence.HolderObject, by.start, by.size, uint64(o.from-by.start)
		kind := s.typing.kinds[by.kind]
		x.HolderKind = &kind
		return
	}
	switch place := s.process.Place(o.from); place.Class {
	case evidence.PlaceGlobal, evidence.PlaceReadOnly:
		h.Kind = evidence.HolderGlobal
		if name, typ, ok := s.globals.word(o.from); ok {
			h.Name = name
			if typ != nil {
				h.Type = typ.Name()
			}
		}
	case evidence.PlaceStack:
		h.Kind = evidence.HolderStack
		if s.StackName != nil {
			if name := s.StackName(o.from); name != "" {
				h.Kind, h.Name = evidence.HolderVariable, name
			}
		}
	default:
		h.Kind = evidence.HolderMemory
	}
}
