package value

import (
	"encoding/binary"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// fakeMemory is a few ranges of the target's memory, with symbols.
type fakeMemory struct {
	ranges  map[evidence.Addr][]byte
	symbols map[evidence.Addr]string
}

func (m *fakeMemory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	for base, data := range m.ranges {
		if addr >= base && uint64(addr-base) < uint64(len(data)) {
			if n := copy(p, data[addr-base:]); n < len(p) {
				return n, &image.MemoryError{Addr: addr + evidence.Addr(n), Reason: "is not mapped", Unmapped: true}
			}
			return len(p), nil
		}
	}
	return 0, &image.MemoryError{Addr: addr, Reason: "is not mapped", Unmapped: true}
}

func (m *fakeMemory) SymbolAt(addr evidence.Addr) (image.Symbol, bool) {
	for base, name := range m.symbols {
		if addr >= base && addr < base+64 {
			return image.Symbol{Name: name, Addr: base, Size: 64}, true
		}
	}
	return image.Symbol{}, false
}

// fakeType is a type made by hand.
type fakeType struct {
	name      string
	kind      debuginfo.Kind
	size      int64
	elem      debuginfo.Type
	count     int64
	members   []debuginfo.Member
	enum      map[int64]string
	reference bool
	variants  map[uint64]*fakeType // by discriminant, read at offset 0
	params    []debuginfo.Type
}

func (t *fakeType) Name() string                     { return t.name }
func (t *fakeType) Kind() debuginfo.Kind             { return t.kind }
func (t *fakeType) Size() int64                      { return t.size }
func (t *fakeType) Elem() debuginfo.Type             { return t.elem }
func (t *fakeType) Count() int64                     { return t.count }
func (t *fakeType) Members() []debuginfo.Member      { return t.members }
func (t *fakeType) Reference() bool                  { return t.reference }
func (t *fakeType) TypeParameters() []debuginfo.Type { return t.params }

func (t *fakeType) Enumerator(v int64) (string, bool) {
	name, ok := t.enum[v]
	return name, ok
}

func (t *fakeType) Variant(read func(debuginfo.Member) (uint64, error)) (string, []debuginfo.Member, bool) {
	if t.variants == nil {
		return "", nil, false
	}
	d, _ := read(debuginfo.Member{Type: u64Type})
	m, ok := t.variants[d]
	if !ok {
		return "", nil, true
	}
	return m.name, m.members, true
}

var (
	i8Type     = &fakeType{name: "signed char", kind: debuginfo.KindChar, size: 1}
	charType   = &fakeType{name: "char", kind: debuginfo.KindChar, size: 1}
	ucharType  = &fakeType{name: "unsigned char", kind: debuginfo.KindChar, size: 1}
	boolType   = &fakeType{name: "bool", kind: debuginfo.KindBool, size: 1}
	i16Type    = &fakeType{name: "short", kind: debuginfo.KindInt, size: 2}
	i32Type    = &fakeType{name: "int", kind: debuginfo.KindInt, size: 4}
	u32Type    = &fakeType{name: "unsigned int", kind: debuginfo.KindUint, size: 4}
	i64Type    = &fakeType{name: "long", kind: debuginfo.KindInt, size: 8}
	u64Type    = &fakeType{name: "unsigned long", kind: debuginfo.KindUint, size: 8}
	i128Type   = &fakeType{name: "__int128", kind: debuginfo.KindInt, size: 16}
	f32Type    = &fakeType{name: "float", kind: debuginfo.KindFloat, size: 4}
	f64Type    = &fakeType{name: "double", kind: debuginfo.KindFloat, size: 8}
	f80Type    = &fakeType{name: "long double", kind: debuginfo.KindFloat, size: 16}
	funcType   = &fakeType{name: "void (int)", kind: debuginfo.KindFunc}
	colorType  = &fakeType{name: "enum color", kind: debuginfo.KindEnum, size: 4, enum: map[int64]string{0: "RED", 1: "GREEN", 2: "BLUE", -1: "NONE"}}
	flagsType  = &fakeType{name: "enum flags", kind: debuginfo.KindEnum, size: 4, enum: map[int64]string{1: "A", 4: "C", 8: "D"}}
	workerType = structOf("struct worker", 16, field("id", 0, i32Type), field("state", 8, pointerTo(charType)))
	configType = structOf("struct config", 72, field("flags", 0, u64Type), field("workers", 8, arrayOf(workerType, 4)))
)

func pointerTo(t debuginfo.Type) *fakeType {
	return &fakeType{name: t.Name() + " *", kind: debuginfo.KindPointer, size: 8, elem: t}
}

func arrayOf(t debuginfo.Type, n int64) *fakeType {
	return &fakeType{name: t.Name() + "[]", kind: debuginfo.KindArray, size: t.Size() * max(n, 0), elem: t, count: n}
}

func field(name string, offset int64, t debuginfo.Type) debuginfo.Member {
	return debuginfo.Member{Name: name, Offset: offset, Type: t}
}

func base(offset int64, t debuginfo.Type) debuginfo.Member {
	return debuginfo.Member{Name: t.Name(), Offset: offset, Type: t, Base: true}
}

func structOf(name string, size int64, members ...debuginfo.Member) *fakeType {
	return &fakeType{name: name, kind: debuginfo.KindStruct, size: size, members: members}
}

// words lays out 64-bit numbers in memory.
func words(values ...uint64) []byte {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint64(data, v)
	}
	return data
}

// show formats data, at address 0x1000, as one object of type t.
func show(t *testing.T, data []byte, typ debuginfo.Type) evidence.Value {
	t.Helper()
	m := &fakeMemory{ranges: map[evidence.Addr][]byte{
		0x1000: data,
		0x2000: []byte("hello\x00world"),
		0x3000: words(7, 0x2000, 9, 0x10),
		0x4000: []byte("bad\xff\x1b[2J\n\"\x00"),
	}, symbols: map[evidence.Addr]string{0x5000: "handler"}}
	return At(m, 0x1000, typ, Options{})
}
