package value

import (
	"strings"
	"testing"
	"unicode/utf8"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// typeMaker makes a type from random bytes, without cycles, but as deep, large
// and contradictory as the bytes say.
type typeMaker struct{ data []byte }

func (m *typeMaker) next() byte {
	if len(m.data) == 0 {
		return 0
	}
	b := m.data[0]
	m.data = m.data[1:]
	return b
}

var fuzzNames = []string{"", "char", "unsigned char", "int", "&str", "std::_Vector_base<int>", "__shared_ptr<T>", "String",
	"Vec<u8>", "RawVec<T>", "std::__uniq_ptr_data<T>", "_Optional_base<T>", "_Head_base<0", "()"}

var fuzzMembers = []string{"", "a", "_M_dataplus", "_M_p", "_M_string_length", "_M_local_buf", "_M_allocated_capacity", "_M_start", "_M_finish",
	"_M_end_of_storage", "_M_len", "_M_str", "_M_t", "_M_h", "_M_head_impl", "_M_ptr", "_M_pi", "_M_use_count", "_M_weak_count",
	"_M_engaged", "_M_value", "_M_node_count", "data_ptr", "length", "vec", "buf", "len", "pointer", "cap", "inner", "__0"}

func (m *typeMaker) make(depth int) *fakeType {
	sizes := []int64{0, 1, 2, 4, 8, 10, 16, 24, 32, 64, 1 << 20, 1 << 40, -1, 3, 1<<63 - 1, 128}
	t := &fakeType{name: fuzzNames[int(m.next())%len(fuzzNames)], kind: debuginfo.Kind(m.next() % 16), size: sizes[m.next()%16]}
	if depth > 6 {
		return t
	}
	switch t.kind {
	case debuginfo.KindPointer, debuginfo.KindArray:
		if m.next() != 0 {
			t.elem = m.make(depth + 1)
		}
		t.count = sizes[m.next()%16]
		t.reference = m.next()&1 != 0
	case debuginfo.KindStruct, debuginfo.KindUnion:
		for range m.next() % 10 {
			b := m.next()
			member := debuginfo.Member{Name: fuzzMembers[int(b)%len(fuzzMembers)], Offset: int64(int8(m.next())), Base: b&0x40 != 0}
			if b&0x80 != 0 {
				member.BitSize, member.BitOffset = int64(m.next()), int64(int8(m.next()))
			}
			if m.next() != 0 {
				member.Type = m.make(depth + 1)
			}
			t.members = append(t.members, member)
		}
		if m.next() == 1 {
			t.variants = map[uint64]*fakeType{uint64(m.next()): m.make(depth + 1)}
		}
	case debuginfo.KindEnum:
		t.enum = map[int64]string{int64(int8(m.next())): "A", int64(m.next()): "B"}
	}
	return t
}

func checkText(t *testing.T, v evidence.Value, depth int) {
	t.Helper()
	if depth > 12 {
		t.Fatal("values nested too deeply")
	}
	if !utf8.ValidString(v.Text) || strings.ContainsFunc(v.Text, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		t.Errorf("text with control characters: %q", v.Text)
	}
	if v.Text == "" && v.Unavailable == "" {
		t.Error("a value without text or reason")
	}
	if len(v.Text) > 10000 {
		t.Errorf("text of %d bytes", len(v.Text))
	}
	if v.Elided < 0 {
		t.Errorf("%d elided", v.Elided)
	}
	for _, f := range v.Fields {
		checkText(t, f.Value, depth+1)
	}
}

func FuzzFormat(f *testing.F) {
	f.Add([]byte{3, 4, 3}, []byte{1, 2, 3, 4})
	f.Add([]byte{0, 11, 8, 1, 1, 2, 1, 8}, []byte("hello\x00world\xff\x1b"))
	f.Add([]byte{0, 10, 7, 2, 2, 0, 1, 0, 10, 4, 1, 3, 0, 1, 0, 9, 4, 1, 1, 2, 1, 1, 0, 0, 4, 8, 1, 0, 5, 4}, words(0x1000, 4, 0, 0))
	f.Add([]byte{5, 12, 7, 1, 0, 9, 4, 1, 3, 4, 3}, words(0x1000, 0x1010, 0x1000))
	f.Fuzz(func(t *testing.T, shape, data []byte) {
		typ := (&typeMaker{shape}).make(0)
		m := &fakeMemory{ranges: map[evidence.Addr][]byte{0x1000: data}, symbols: map[evidence.Addr]string{0x1000: "symbol"}}
		checkText(t, At(m, 0x1000, typ, Options{}), 0)
		checkText(t, Scalar(m, data, typ), 0)
		for offset := int64(-2); offset < 40; offset += 3 {
			Path(typ, offset, int(offset)%9)
		}
	})
}

func FuzzLocation(f *testing.F) {
	for _, expr := range [][]byte{
		{0x53}, {0x91, 0x78}, {0x76, 24, 0x06}, {0x53, 0x93, 4, 0x31, 0x9f, 0x93, 4}, {0x31, 0x28, 2, 0, 0x08, 9, 0x32, 0x9f},
		{0x31, 0x2f, 0xfc, 0xff, 0x9f}, {0x31, 0x30, 0x1b, 0x9f}, {0xa3, 1, 0x55, 0x9f}, {0x0e, 8, 0, 0, 0, 0, 0, 0, 0, 0xe0},
		{0x9e, 0xff, 0xff, 0xff, 0xff, 0x7f, 1}, {0xa5, 3, 0x20, 0xa8, 0, 0x9f}, {0x12, 0x13, 0x14, 0x15, 9, 0x16, 0x17},
		{0xf2, 0, 0, 0, 0, 0}, {0x30, 0x94, 9}, {0x9d, 7, 1},
	} {
		f.Add(expr, []byte{0x9c})
	}
	f.Fuzz(func(t *testing.T, expr, base []byte) {
		frame := &Frame{Memory: &fakeMemory{ranges: map[evidence.Addr][]byte{0x7000: words(11, 22, 33, 0x7008)}},
			CFA: 0x7010, Module: &image.Module{Bias: 0x6000}, Caller: func() *Frame { return &Frame{} }}
		frame.Registers.Set(image.RBX, 77)
		frame.Registers.Set(image.RBP, 0x7000)
		frame.Registers.Vector = &image.VectorState{}
		v := debuginfo.Variable{Name: "v", Type: workerType, Location: expr, FrameBase: base}
		checkText(t, Read(frame, v, Options{}).Value, 0)
		if list, err := scan(expr); err == nil {
			end := 0
			for _, o := range list {
				if o.start != end || o.end <= o.start || o.end > len(expr) {
					t.Fatalf("operation from %d to %d after %d", o.start, o.end, end)
				}
				end = o.end
			}
		}
	})
}
