package value

import (
	"encoding/binary"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// The library types below have the members that libstdc++ 12 and Rust 1.95
// give them in DWARF.
func cxxStringType() *fakeType {
	local := &fakeType{name: "", kind: debuginfo.KindUnion, size: 16, members: []debuginfo.Member{
		field("_M_local_buf", 0, arrayOf(charType, 16)), field("_M_allocated_capacity", 0, u64Type)}}
	return structOf("std::string", 32,
		field("_M_dataplus", 0, structOf("_Alloc_hider", 8, field("_M_p", 0, pointerTo(charType)))),
		field("_M_string_length", 8, u64Type), field("", 16, local))
}

func cxxVectorType(elem debuginfo.Type) *fakeType {
	data := structOf("_Vector_impl_data", 24, field("_M_start", 0, pointerTo(elem)),
		field("_M_finish", 8, pointerTo(elem)), field("_M_end_of_storage", 16, pointerTo(elem)))
	impl := structOf("_Vector_impl", 24, base(0, structOf("allocator<int>", 1)), base(0, data))
	return structOf("Numbers", 24, base(0, structOf("std::_Vector_base<int, std::allocator<int> >", 24, field("_M_impl", 0, impl))))
}

func cxxUniquePtrType(elem debuginfo.Type) *fakeType {
	head := structOf("std::_Head_base<0, T*, false>", 8, field("_M_head_impl", 0, pointerTo(elem)))
	deleter := structOf("std::_Head_base<1, D, true>", 1, field("_M_head_impl", 0, structOf("D", 1)))
	tuple := structOf("tuple", 8, base(0, structOf("_Tuple_impl<0, T*, D>", 8, base(0, structOf("_Tuple_impl<1, D>", 1, base(0, deleter))), base(0, head))))
	return structOf("unique_ptr<T>", 8, field("_M_t", 0, structOf("std::__uniq_ptr_data<T>", 8, base(0, structOf("__uniq_ptr_impl<T>", 8, field("_M_t", 0, tuple))))))
}

func cxxSharedPtrType(elem debuginfo.Type) *fakeType {
	block := structOf("_Sp_counted_base<2>", 16, field("_vptr._Sp_counted_base", 0, u64Type),
		field("_M_use_count", 8, i32Type), field("_M_weak_count", 12, i32Type))
	return structOf("shared_ptr<T>", 16, base(0, structOf("std::__shared_ptr<T, 2>", 16,
		field("_M_ptr", 0, pointerTo(elem)), field("_M_refcount", 8, structOf("__shared_count<2>", 8, field("_M_pi", 0, pointerTo(block)))))))
}

func cxxOptionalType(elem debuginfo.Type) *fakeType {
	payload := structOf("_Optional_payload<long>", 16, base(0, structOf("_Optional_payload_base<long>", 16,
		field("_M_payload", 0, &fakeType{name: "_Storage", kind: debuginfo.KindUnion, size: 8, members: []debuginfo.Member{
			field("_M_empty", 0, structOf("_Empty_byte", 1)), field("_M_value", 0, elem)}}),
		field("_M_engaged", 8, boolType))))
	return structOf("optional<long>", 16, base(0, structOf("_Optional_base<long>", 16, field("_M_payload", 0, payload))))
}

func rustVecType(elem debuginfo.Type) *fakeType {
	unique := structOf("Unique<u8>", 8, field("pointer", 0, structOf("NonNull<u8>", 8, field("pointer", 0, pointerTo(i8Type)))))
	inner := structOf("RawVecInner", 16, field("ptr", 8, unique), field("cap", 0, structOf("UsizeNoHighBit", 8, field("__0", 0, u64Type))))
	v := structOf("alloc::vec::Vec<i64, A>", 24, field("buf", 0, structOf("RawVec<i64, A>", 16, field("inner", 0, inner))), field("len", 16, u64Type))
	if elem != nil {
		v.params = []debuginfo.Type{elem}
	}
	return v
}

func TestLibraryTypes(t *testing.T) {
	rustString := structOf("alloc::string::String", 24, field("vec", 0, rustVecType(i8Type)))
	rustString.members[0].Type.(*fakeType).name = "alloc::vec::Vec<u8, A>"
	str := structOf("&str", 16, field("data_ptr", 0, pointerTo(ucharType)), field("length", 8, u64Type))
	slice := structOf("&[i64]", 16, field("data_ptr", 0, pointerTo(i64Type)), field("length", 8, u64Type))
	view := structOf("std::string_view", 16, field("_M_len", 0, u64Type), field("_M_str", 8, pointerTo(charType)))
	short := append(words(0x1010, 3), "abc\x00............"...)
	for _, test := range []struct {
		name              string
		typ               debuginfo.Type
		data              []byte
		text, unavailable string
	}{
		{"short string", cxxStringType(), append(words(0x1010, 3), "abc\x00............"...), `"abc"`, ""},
		{"long string", cxxStringType(), words(0x2000, 11, 30, 0), `"hello\0world"`, ""},
		{"string too long for its buffer", cxxStringType(), append(words(0x1010, 16), short[16:]...), "", "not a valid std::string: length 16, capacity 15, data at 0x1010"},
		{"string of 2^60 bytes", cxxStringType(), words(0x2000, 1<<60, 1<<61, 0), "", "not a valid std::string: length 1152921504606846976, capacity 2305843009213693952, data at 0x2000"},
		{"string_view", view, words(5, 0x2000), `"hello"`, ""},
		{"vector", cxxVectorType(i64Type), words(0x3000, 0x3018, 0x3020), "std::vector of size 3 {7, 8192, 9}", ""},
		{"empty vector", cxxVectorType(i64Type), words(0, 0, 0), "std::vector of size 0 {}", ""},
		{"vector with end before begin", cxxVectorType(i64Type), words(0x3000, 0x2ff8, 0x3020), "", "not a valid std::vector: begin 0x3000, end 0x2ff8, end of storage 0x3020"},
		{"unaligned vector", cxxVectorType(i64Type), words(0x3000, 0x3003, 0x3020), "", "not a valid std::vector: begin 0x3000, end 0x3003, end of storage 0x3020"},
		{"dangling vector", cxxVectorType(i64Type), words(0x9000, 0x9008, 0x9008), "", "memory at 0x9000 is not mapped"},
		{"unique_ptr", cxxUniquePtrType(workerType), words(0x3000), "0x3000", ""},
		{"shared_ptr", cxxSharedPtrType(workerType), append(words(0x3000, 0x1010, 0), words(3<<32|2)...), "0x3000 (2 owners, 2 weak)", ""},
		{"optional", cxxOptionalType(i64Type), words(42, 1), "42", ""},
		{"nullopt", cxxOptionalType(i64Type), words(42, 0), "std::nullopt", ""},
		{"broken optional", cxxOptionalType(i64Type), words(42, 9), "", "not a valid std::optional: its flag is 9"},
		{"&str", str, words(0x2000, 5), `"hello"`, ""},
		{"slice", slice, words(0x3000, 2), "slice of length 2 {7, 8192}", ""},
		{"hostile slice", slice, words(0x3000, 1<<63), "", "not a valid slice: length 9223372036854775808, data at 0x3000"},
		{"Vec", rustVecType(i64Type), words(4, 0x3000, 2), "Vec of length 2 {7, 8192}", ""},
		{"Vec of unknown type", rustVecType(nil), words(4, 0x3000, 2), "Vec of length 2 at 0x3000", ""},
		{"broken Vec", rustVecType(i64Type), words(1, 0x3000, 2), "", "not a valid Vec: length 2, capacity 1, data at 0x3000"},
		{"String", rustString, words(8, 0x2000, 5), `"hello"`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := show(t, test.data, test.typ); got.Text != test.text || got.Unavailable != test.unavailable {
				t.Errorf("got %q, unavailable %q, want %q, %q", got.Text, got.Unavailable, test.text, test.unavailable)
			}
		})
	}
}

func TestPath(t *testing.T) {
	union := &fakeType{name: "union u", kind: debuginfo.KindUnion, size: 8, members: []debuginfo.Member{
		field("small", 0, i32Type), field("big", 0, i64Type)}}
	outer := structOf("struct outer", 112, base(0, structOf("Base", 8, field("x", 0, i32Type), field("y", 4, i32Type))),
		field("u", 8, union), field("cfg", 16, configType), field("", 88, union), field("matrix", 96, arrayOf(arrayOf(i16Type, 2), 3)),
		debuginfo.Member{Name: "low", Offset: 108, Type: u32Type, BitSize: 3}, debuginfo.Member{Name: "high", Offset: 108, Type: u32Type, BitSize: 10, BitOffset: 8})
	for _, test := range []struct {
		offset int64
		size   int
		want   string
		leaf   string
		ok     bool
	}{
		{0, 4, ".x", "int", true},
		{4, 4, ".y", "int", true},
		{6, 1, ".y", "int", true},
		{8, 4, ".u.small", "int", true},
		{8, 8, ".u.big", "long", true},
		{16, 8, ".cfg.flags", "unsigned long", true},
		{16 + 8 + 3*16 + 8, 8, ".cfg.workers[3].state", "char *", true},
		{16 + 8 + 2*16, 16, ".cfg.workers[2]", "struct worker", true},
		{16 + 8 + 2*16 + 5, 1, ".cfg.workers[2]", "struct worker", false}, // padding
		{88, 4, ".small", "int", true},
		{96 + 6, 2, ".matrix[1][1]", "short", true},
		{108, 1, ".low", "unsigned int", true},
		{109, 1, ".high", "unsigned int", true},
		{500, 4, "", "struct outer", false},
		{-1, 4, "", "struct outer", false},
		{0, 112, "", "struct outer", true},
	} {
		path, leaf, ok := Path(outer, test.offset, test.size)
		if path != test.want || ok != test.ok || leaf == nil || leaf.Name() != test.leaf {
			t.Errorf("offset %d size %d: got %q %v %v, want %q %s %v", test.offset, test.size, path, leaf, ok, test.want, test.leaf, test.ok)
		}
	}
}

func TestLocations(t *testing.T) {
	memory := &fakeMemory{ranges: map[evidence.Addr][]byte{0x7000: words(11, 22, 33, 0x7008)}}
	frame := &Frame{memory: memory, CFA: 0x7010, Module: &image.Module{Bias: 0x6000}}
	frame.Registers.Set(image.RBX, 77)
	frame.Registers.Set(image.RBP, 0x7000)
	frame.Registers.Vector = &image.VectorState{3: {0, 0, 0xc0, 0x3f}}
	constant := func(v uint64) []byte { return binary.LittleEndian.AppendUint64([]byte{0x0e}, v) }
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	rbpBase := []byte{0x56}
	for _, test := range []struct {
		name           string
		expr, base     []byte
		typ            debuginfo.Type
		want, location string
		unavailable    string
	}{
		{name: "register", expr: []byte{0x53}, typ: i64Type, want: "77", location: "rbx"},
		{name: "lost register", expr: []byte{0x55}, typ: i64Type, location: "rdi", unavailable: "optimized out: rdi is not kept across the call"},
		{name: "vector", expr: []byte{0x64}, typ: f32Type, want: "1.5", location: "xmm3"},
		{name: "x87", expr: []byte{0x90, 33}, typ: f80Type, unavailable: "it is in st(0), which is not read"},
		{name: "breg", expr: []byte{0x76, 8}, typ: i64Type, want: "22", location: "0x7008"},
		{name: "lost breg", expr: []byte{0x75, 0}, typ: i64Type, unavailable: "optimized out: rdi is not kept across the call"},
		{name: "fbreg from cfa", expr: []byte{0x91, 0x78}, base: []byte{0x9c}, typ: i64Type, want: "22", location: "0x7008"},
		{name: "fbreg from rbp", expr: []byte{0x91, 0x10}, base: rbpBase, typ: i64Type, want: "33", location: "0x7010"},
		{name: "fbreg without base", expr: []byte{0x91, 0x10}, typ: i64Type, unavailable: "the function's frame base is not known"},
		{name: "fbreg within its base", expr: []byte{0x91, 0}, base: []byte{0x91, 0}, typ: i64Type, unavailable: "the function's frame base is not known"},
		{name: "addr", expr: join([]byte{0x03}, words(0x1000)), typ: i64Type, want: "11", location: "0x7000"},
		{name: "stack value", expr: []byte{0x73, 1, 0x9f}, typ: i64Type, want: "78"},
		{name: "deref", expr: []byte{0x76, 24, 0x06}, typ: i64Type, want: "22", location: "0x7008"},
		{name: "implicit value", expr: []byte{0x9e, 4, 9, 0, 0, 0}, typ: i32Type, want: "9"},
		{name: "implicit value too long", expr: []byte{0x9e, 0xff, 0xff, 0xff, 0xff, 0x7f, 1}, typ: i32Type, unavailable: "location expression at 0: the operands of operation 0x9e run past its end"},
		{name: "pieces", expr: []byte{0x53, 0x93, 4, 0x31, 0x9f, 0x93, 4}, typ: structOf("s", 8, field("a", 0, i32Type), field("b", 4, i32Type)), want: "{a = 77, b = 1}", location: "2 pieces"},
		{name: "missing piece", expr: []byte{0x53, 0x93, 4, 0x93, 4}, typ: structOf("s", 8, field("a", 0, i32Type), field("b", 4, i32Type)), want: "{a = 77, b = <optimized out>}", location: "2 pieces"},
		{name: "memory piece", expr: []byte{0x76, 0, 0x93, 8}, typ: i64Type, want: "11", location: "0x7000"},
		{name: "forward branch", expr: []byte{0x31, 0x28, 2, 0, 0x08, 9, 0x32, 0x9f}, typ: i64Type, want: "2"},
		{name: "backward branch", expr: []byte{0x31, 0x2f, 0xfc, 0xff, 0x9f}, typ: i64Type, unavailable: "location expression at 1: branch backward by 4"},
		{name: "branch into an operand", expr: []byte{0x31, 0x28, 1, 0, 0x08, 0x32, 0x9f}, typ: i64Type, unavailable: "location expression: branch to 5, where no operation starts"},
		{name: "division by zero", expr: []byte{0x31, 0x30, 0x1b, 0x9f}, typ: i64Type, unavailable: "location expression: runtime error: integer divide by zero"},
		{name: "underflow", expr: []byte{0x23, 4, 0x9f}, typ: i64Type, unavailable: "location expression: runtime error: index out of range [-1]"},
		{name: "entry value without caller", expr: []byte{0xa3, 1, 0x55, 0x9f}, typ: i64Type, unavailable: "optimized out: it was passed in rdi, and the caller is not known"},
		{name: "implicit pointer", expr: []byte{0xa0, 0, 0, 0, 0, 0}, typ: i64Type, unavailable: "optimized out: a pointer to a variable that is not in memory"},
		{name: "constant of an unknown type", expr: join([]byte{0xa4, 0x20, 8}, words(5), []byte{0x9f}), typ: i64Type, unavailable: "computed with typed DWARF operations that are not evaluated"},
		{name: "typed arithmetic", expr: []byte{0xa5, 3, 0x20, 0x31, 0x22, 0x9f}, typ: i64Type, unavailable: "computed with typed DWARF operations that are not evaluated"},
		{name: "tls without thread", expr: join(constant(8), []byte{0xe0}), typ: i64Type, unavailable: "the thread's local storage is not known"},
		{name: "addrx", expr: []byte{0xa1, 4}, typ: i64Type, unavailable: "described by DWARF operation 0xa1, which is not evaluated"},
		{name: "register in the middle", expr: []byte{0x53, 0x31, 0x22}, typ: i64Type, unavailable: "location expression at 0: operation 0x53 is not the last one"},
		{name: "unknown operation", expr: []byte{0xff}, typ: i64Type, unavailable: "location expression at 0: unknown operation 0xff"},
		{name: "none", typ: i64Type, unavailable: "optimized out"},
		{name: "unmapped", expr: constant(0x10), typ: i64Type, location: "0x10", unavailable: "memory at 0x10 is not mapped"},
		{name: "deref of unmapped", expr: join(constant(0x10), []byte{0x06, 0x9f}), typ: i64Type, unavailable: "memory at 0x10 is not mapped"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Read(frame, debuginfo.Variable{Name: "v", Type: test.typ, Location: test.expr, FrameBase: test.base}, Options{})
			if got.Value.Text != test.want || got.Location != test.location || got.Value.Unavailable != test.unavailable {
				t.Errorf("got %q at %q, unavailable %q, want %q at %q, %q",
					got.Value.Text, got.Location, got.Value.Unavailable, test.want, test.location, test.unavailable)
			}
		})
	}
}

func TestConstant(t *testing.T) {
	got := Read(&Frame{}, debuginfo.Variable{Type: i32Type, Const: []byte{7, 0, 0, 0}}, Options{})
	if got.Value.Text != "7" || got.Location != "" {
		t.Errorf("got %+v", got)
	}
}
