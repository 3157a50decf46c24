package mallocsum

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

const (
	testRoots = 0x10000
	testHeap  = 0x500000
)

// testMemory is memory of roots and of a heap.
type testMemory struct{ roots, heap []byte }

func (m testMemory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	for at, data := range map[evidence.Addr][]byte{testRoots: m.roots, testHeap: m.heap} {
		if addr >= at && addr < at+evidence.Addr(len(data)) {
			if n := copy(p, data[addr-at:]); n < len(p) {
				return n, fmt.Errorf("memory at %v ends", addr)
			}
			return len(p), nil
		}
	}
	return 0, fmt.Errorf("memory at %v is not there", addr)
}

// scene makes memory of bytes: the first ones are sizes of objects, the others pointers between them, each from an object, or from the roots, to an object
// and an offset in it.
func scene(data []byte) (testMemory, *table) {
	m := testMemory{roots: make([]byte, 256)}
	var list []object
	if len(data) == 0 {
		return m, newTable(nil)
	}
	n := min(int(data[0])%24, len(data)-1)
	at := evidence.Addr(testHeap)
	for _, b := range data[1 : 1+n] {
		size := 24 + uint64(b%16)*16
		list = append(list, object{start: at, size: size})
		at += evidence.Addr(size) + 8
	}
	m.heap = make([]byte, at-testHeap)
	for rest := data[1+n:]; len(rest) >= 4 && n > 0; rest = rest[4:] {
		from, to := int(rest[0])%(n+1), list[int(rest[2])%n]
		memory, off := m.roots, int(rest[1])*8
		if from < n {
			memory = m.heap[list[from].start-testHeap:][:list[from].size]
		}
		value := uint64(to.start) + uint64(rest[3])
		if rest[3] > 200 {
			value = uint64(to.start)
		}
		binary.LittleEndian.PutUint64(memory[off%(len(memory)-7)&^7:], value)
	}
	return m, newTable(list)
}

// closure are the objects that words of memory lead to, by the definition.
func closure(m image.Memory, t *table, spans []span, starts bool) map[int]bool {
	found := map[int]bool{}
	for len(spans) > 0 {
		x := spans[0]
		spans = spans[1:]
		for at := x.start; at+8 <= x.end; at += 8 {
			v, err := image.Uint64(m, at)
			if err != nil {
				continue
			}
			for i := range t.objects {
				o := &t.objects[i]
				if w := evidence.Addr(v); w >= o.start && w < o.start+evidence.Addr(o.size) && !found[i] && (!starts || w == o.start) {
					found[i] = true
					spans = append(spans, span{o.start, o.start + evidence.Addr(o.size)})
				}
			}
		}
	}
	return found
}

// FuzzMark compares the objects that are reached, and how, with the definition; and each unreachable one has to be reached from one of the direct ones, of which
// none is reached from another.
func FuzzMark(f *testing.F) {
	f.Add([]byte{5, 0, 1, 2, 3, 4, 5, 0, 1, 0, 1, 0, 2, 0, 3, 0, 4, 0, 4, 0, 3, 0})
	f.Add([]byte{3, 9, 9, 9, 0, 0, 1, 255, 1, 0, 2, 9, 2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		memory, table := scene(data)
		s := &searcher{memory: memory, table: table, buffer: make([]byte, searchStep)}
		root := span{testRoots, testRoots + evidence.Addr(len(memory.roots))}
		m := &marker{searcher: s}
		m.mark(&image.Process{}, &roots{data: []span{root}})
		all, exactly := closure(memory, table, []span{root}, false), closure(memory, table, []span{root}, true)
		for i := range table.objects {
			want := unreached
			switch {
			case exactly[i]:
				want = exact
			case all[i]:
				want = inner
			}
			if got := table.objects[i].reach; got != want {
				t.Errorf("object %d: %d, want %d", i, got, want)
			}
		}
		l := findLeaks(s)
		checkLeaks(t, memory, l)
	})
}

func checkLeaks(t *testing.T, memory image.Memory, l *leaks) {
	led := map[int]bool{}
	for _, i := range l.direct {
		o := &l.table.objects[i]
		reached := closure(memory, l.table, []span{{o.start, o.start + evidence.Addr(o.size)}}, false)
		for _, j := range l.direct {
			if j != i && reached[int(j)] {
				t.Errorf("the direct leak %d leads to the direct leak %d", i, j)
			}
		}
		led[int(i)] = true
		for j := range reached {
			led[j] = true
		}
	}
	for n, i := range l.list {
		if !led[int(i)] {
			t.Errorf("no direct leak leads to the unreachable object %d", i)
		}
		if direct := slices.Contains(l.direct, i); direct != (l.owner[n] == ownerItself) || l.owner[n] == ownerNone || int(l.owner[n]) >= len(l.direct) {
			t.Errorf("the owner of the unreachable object %d is %d", i, l.owner[n])
		}
	}
}

// FuzzTable compares the search of objects by address with a search of all of them.
func FuzzTable(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 250, 0, 9}, uint16(40))
	f.Fuzz(func(t *testing.T, data []byte, at uint16) {
		var list []object
		next := evidence.Addr(testHeap)
		for i := 0; i+1 < len(data); i += 2 {
			list = append(list, object{start: next + evidence.Addr(data[i])<<(data[i]%20), size: uint64(data[i+1]) + 1})
			next = list[len(list)-1].start + evidence.Addr(data[i+1]) - evidence.Addr(data[i]%8)
		}
		table := newTable(list)
		addresses := []evidence.Addr{0, testHeap, testHeap + evidence.Addr(at), ^evidence.Addr(0)}
		for i := range table.objects {
			o := &table.objects[i]
			addresses = append(addresses, o.start-1, o.start, o.start+evidence.Addr(o.size)-1, o.start+evidence.Addr(o.size))
		}
		for _, a := range addresses {
			want := slices.IndexFunc(table.objects, func(o object) bool { return a >= o.start && a < o.start+evidence.Addr(o.size) })
			if got := table.at(a); got != want {
				t.Fatalf("%v: object %d, want %d", a, got, want)
			}
		}
	})
}

// selfType is a structure.
type selfType struct{ debuginfo.Type }

func (selfType) Name() string { return "struct self" }

// FuzzFollow has objects with a type that refers to itself, and anything in their memory.
func FuzzFollow(f *testing.F) {
	f.Add([]byte{4, 1, 2, 3, 4, 0, 0, 1, 0}, uint8(16))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		memory, table := scene(data)
		y := &typing{memory: memory, mapped: func(evidence.Addr) bool { return true }, table: table, layouts: layouts{}, kinds: []evidence.MallocKind{{}}, left: 1 << 16,
			numbers: map[evidence.MallocKind]int32{{}: 0}, buffer: make([]byte, searchStep)}
		l := &layout{typ: selfType{}, kind: debuginfo.KindStruct, size: max(8, uint64(size)), shapes: map[evidence.MallocShape]int32{}}
		l.pointers = []typedPointer{{0, l}, {l.size - 8, l}}
		y.pointersIn(l, memory.roots, 0)
		y.follow()
		for i := range table.objects {
			if o := &table.objects[i]; int(o.kind) >= len(y.kinds) || (o.rank == rankNone) != (o.kind == 0) {
				t.Errorf("object %d: kind %d, rank %d", i, o.kind, o.rank)
			}
		}
	})
}
