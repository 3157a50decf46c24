package value

import (
	"testing"

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
			if got := show(t, test.data, test.typ); got.Text != test.text || got.Why() != test.unavailable {
				t.Errorf("got %q, unavailable %q, want %q, %q", got.Text, got.Why(), test.text, test.unavailable)
			}
		})
	}
}
