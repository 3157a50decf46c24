package mallocsum

import (
	"encoding/binary"
	"errors"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

var errNoValue = errors.New("no value")

// rank orders the types that an object may have: the higher one is kept.
type rank uint8

const (
	rankNone rank = iota
	rankText
	rankCharacters
	rankStart
	rankArray
	rankOne
	rankVtable
)

// mostFollowed bounds the typed pointers that are followed in objects.
const mostFollowed = 64 << 20

// typing gives objects their types.
type typing struct {
	process *image.Process
	memory  image.Memory
	mapped  func(evidence.Addr) bool
	table   *table
	layouts layouts
	// kinds are the types of objects, the unknown one first; numbers has their indexes.
	kinds   []evidence.MallocKind
	numbers map[evidence.MallocKind]int32
	// queue are objects whose typed pointers are still to be followed.
	queue  []typedObject
	left   int
	buffer []byte
}

// typedObject is an object with values of a type from an offset on.
type typedObject struct {
	index  int
	layout *layout
	offset uint64
	shape  evidence.MallocShape
}

func newTyping(p *image.Process, t *table) *typing {
	mapped := func(at evidence.Addr) bool { return p.MappingAt(at) != nil }
	return &typing{process: p, memory: p, mapped: mapped, table: t, layouts: layouts{}, kinds: []evidence.MallocKind{{}}, left: mostFollowed,
		numbers: map[evidence.MallocKind]int32{{}: 0}, buffer: make([]byte, searchStep)}
}

func (y *typing) number(k evidence.MallocKind) int32 {
	n, known := y.numbers[k]
	if !known {
		n = int32(len(y.kinds))
		y.kinds = append(y.kinds, k)
		y.numbers[k] = n
	}
	return n
}

// Rounding of sizes: malloc/malloc.c, request2size; a rest too small for a chunk stays with the object.
const (
	leastUsable = 24
	granule     = 16
)

// fits reports whether malloc makes an object of this size for a request.
func (o *object) fits(request uint64) bool {
	usable := max(leastUsable, (request+8+granule-1)&^(granule-1)-8)
	if o.mapped {
		return request <= o.size && (o.size-request) < 2*pageSize
	}
	return o.size == usable || o.size == usable+granule
}

// Array cookies: operator new[] puts the number of elements before those with a destructor (Itanium C++ ABI 2.7).
const cookie = 8

// pointed gives the object at an address the type of a pointer to it.
func (y *typing) pointed(to *layout, word evidence.Addr) {
	i := y.table.at(word)
	if i < 0 || to == nil {
		return
	}
	o := &y.table.objects[i]
	switch off := uint64(word - o.start); off {
	case 0:
		y.assign(i, to, 0)
	case cookie:
		n, err := image.Uint64(y.memory, o.start)
		if err == nil && n > 0 && n <= o.size/to.size && o.fits(cookie+n*to.size) {
			y.assign(i, to, cookie)
		}
	}
}

// assign gives an object a type that a pointer has, if the sizes fit, and if it is better than the one that it has.
func (y *typing) assign(i int, l *layout, offset uint64) {
	o := &y.table.objects[i]
	if offset+l.size > o.size {
		return
	}
	shape, r := evidence.ShapeStart, rankStart
	n := (o.size - offset) / l.size
	switch {
	case l.kind == debuginfo.KindChar:
		shape, r = evidence.ShapeArray, rankCharacters
	case offset == 0 && o.fits(l.size):
		shape, r = evidence.ShapeOne, rankOne
	case o.rank < rankArray && (offset != 0 || n > 1 && o.fits(n*l.size) && y.repeats(o, l)):
		shape, r = evidence.ShapeArray, rankArray
	}
	if r <= o.rank {
		return
	}
	number := l.shapes[shape]
	if number == 0 {
		number = y.number(evidence.MallocKind{Name: bareName(l.typ), Shape: shape, Basis: evidence.BasisPointer, Proof: evidence.Inferred})
		l.shapes[shape] = number
	}
	o.rank, o.kind = r, number
	y.enqueue(typedObject{i, l, offset, shape})
}

// mostCompared bounds the bytes of an object that are compared with an array of a type.
const mostCompared = 4096

// repeats reports whether an object is an array of a type. One whose type is derived from this one may have a size that fits an array, so of the
// elements after the first all pointers have to lead somewhere, and one at least to an object. Numbers have nothing derived from them.
func (y *typing) repeats(o *object, l *layout) bool {
	switch l.kind {
	case debuginfo.KindStruct, debuginfo.KindUnion, debuginfo.KindArray:
	default:
		return true
	}
	data := make([]byte, min(o.size, max(mostCompared, 2*l.size), searchStep))
	n, _ := y.memory.ReadMemory(o.start, data)
	led := false
	for base := l.size; base+l.size <= uint64(n); base += l.size {
		for _, p := range l.pointers {
			word := evidence.Addr(binary.LittleEndian.Uint64(data[base+p.offset:]))
			if word != 0 && !y.mapped(word) {
				return false
			}
			led = led || y.table.at(word) >= 0
		}
	}
	return led
}

// bareName is a type's name without qualifiers: objects have none.
func bareName(t debuginfo.Type) string {
	name := t.Name()
	for _, q := range []string{"const ", "volatile "} {
		name = strings.TrimPrefix(name, q)
	}
	return name
}

func (y *typing) enqueue(t typedObject) {
	if len(t.layout.pointers) > 0 {
		y.queue = append(y.queue, t)
	}
}

// follow follows the typed pointers of objects, to objects that get their types by that.
func (y *typing) follow() {
	for len(y.queue) > 0 && y.left > 0 {
		t := y.queue[len(y.queue)-1]
		y.queue = y.queue[:len(y.queue)-1]
		y.followIn(&t)
	}
}

func (y *typing) followIn(t *typedObject) {
	o := &y.table.objects[t.index]
	size := t.layout.size
	count := uint64(1)
	if t.shape == evidence.ShapeArray {
		count = (o.size - t.offset) / size
	}
	// Larger elements than the buffer are followed as far as that holds them.
	each := max(1, uint64(len(y.buffer))/size)
	for first := uint64(0); first < count && y.left > 0; first += each {
		here := min(each, count-first)
		data := y.buffer[:min(uint64(len(y.buffer)), here*size)]
		n, _ := y.memory.ReadMemory(o.start+evidence.Addr(t.offset+first*size), data)
		for k := range here {
			y.pointersIn(t.layout, data[:n], k*size)
		}
	}
}

// pointersIn follows the pointers of a value of a type at an offset in data, as far as data has them.
func (y *typing) pointersIn(l *layout, data []byte, base uint64) {
	for _, p := range l.pointers {
		at := base + p.offset
		if at+8 > uint64(len(data)) {
			continue
		}
		y.left--
		if word := binary.LittleEndian.Uint64(data[at:]); word != 0 {
			y.pointed(p.to, evidence.Addr(word))
		}
	}
}

// Value is a value of a typed variable: its bytes, lowest address first.
type Value struct {
	Type debuginfo.Type
	Data []byte
}

// values follows the pointers in variables.
func (y *typing) values(list []Value) {
	for i := range list {
		if l := y.layouts.of(list[i].Type); l != nil {
			y.pointersIn(l, list[i].Data, 0)
		}
	}
	y.follow()
}
