package mallocsum

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"

	"diagnose/evidence"
)

// object is a live object of the heap.
type object struct {
	start evidence.Addr
	size  uint64
	// from is the address of the word by which it was reached first; 0: none, or a register.
	from evidence.Addr
	// kind is its type, by its number among those of the typing.
	kind int32
	rank rank
	// reach is how it was reached.
	reach  reach
	mapped bool
}

// contains reports whether the object has the address; its end does not count, as with LeakSanitizer.
func (o *object) contains(at evidence.Addr) bool { return at-o.start < evidence.Addr(o.size) }

// mostObjects bounds the live objects that are kept, 40 bytes for each.
const mostObjects = 16 << 20

// table finds objects by address.
type table struct {
	objects []object
	// low and high bound all objects; first has the index of the first object that starts at or after a multiple of 1<<shift from low.
	low, high evidence.Addr
	shift     uint
	first     []uint32
}

// newTable sorts the objects, leaves out those that overlap one before, which only a damaged heap has, and makes the index.
func newTable(list []object) *table {
	byStart := func(x, y object) int { return cmp.Compare(x.start, y.start) }
	if !slices.IsSortedFunc(list, byStart) {
		slices.SortFunc(list, byStart)
	}
	kept := list[:0]
	for _, o := range list {
		if n := len(kept); n == 0 || o.start >= kept[n-1].start+evidence.Addr(kept[n-1].size) {
			kept = append(kept, o)
		}
	}
	t := &table{objects: kept}
	if len(kept) == 0 {
		return t
	}
	last := &kept[len(kept)-1]
	t.low, t.high = kept[0].start, last.start+evidence.Addr(last.size)
	// As many entries as there are objects, or twice as many.
	const least = 5
	span := uint64(t.high - t.low)
	t.shift = uint(max(least, bits.Len64(span/uint64(len(kept)))-1))
	t.first = make([]uint32, span>>t.shift+2)
	i := 0
	for b := range t.first {
		for i < len(kept) && uint64(kept[i].start-t.low) < uint64(b)<<t.shift {
			i++
		}
		t.first[b] = uint32(i)
	}
	return t
}

// at is the index of the object that contains an address; -1: none does.
func (t *table) at(addr evidence.Addr) int {
	if addr < t.low || addr >= t.high {
		return -1
	}
	b := uint64(addr-t.low) >> t.shift
	from, to := int(t.first[b]), int(t.first[b+1])
	const few = 8
	if to-from > few {
		from += sort.Search(to-from, func(i int) bool { return t.objects[from+i].start > addr })
	} else {
		for from < to && t.objects[from].start <= addr {
			from++
		}
	}
	if i := from - 1; i >= 0 && t.objects[i].contains(addr) {
		return i
	}
	return -1
}
