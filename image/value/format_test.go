package value

import (
	"math"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

func TestScalars(t *testing.T) {
	for _, test := range []struct {
		name string
		typ  debuginfo.Type
		data []byte
		want string
	}{
		{"int", i32Type, []byte{0xff, 0xff, 0xff, 0xff}, "-1"},
		{"unsigned", u32Type, []byte{0xff, 0xff, 0xff, 0xff}, "4294967295"},
		{"short", i16Type, []byte{0x00, 0x80}, "-32768"},
		{"long", i64Type, words(1 << 63), "-9223372036854775808"},
		{"int128", i128Type, words(0, 1), "18446744073709551616"},
		{"negative int128", i128Type, words(^uint64(0), ^uint64(0)), "-1"},
		{"true", boolType, []byte{1}, "true"},
		{"broken bool", boolType, []byte{7}, "7 (not a valid bool)"},
		{"char", charType, []byte{'A'}, "65 'A'"},
		{"char escape", charType, []byte{'\n'}, `10 '\n'`},
		{"char high", charType, []byte{0xff}, `-1 '\xff'`},
		{"uchar high", ucharType, []byte{0xff}, `255 '\xff'`},
		{"quote", charType, []byte{'\''}, `39 '\''`},
		{"float", f32Type, words(uint64(math.Float32bits(0.1)))[:4], "0.1"},
		{"double", f64Type, words(math.Float64bits(1e300)), "1e+300"},
		{"nan", f64Type, words(math.Float64bits(math.NaN())), "nan"},
		{"minus inf", f64Type, words(math.Float64bits(math.Inf(-1))), "-inf"},
		{"long double", f80Type, words(0xc000000000000000, 0x3fff), "1.5"},
		{"enum", colorType, []byte{2, 0, 0, 0}, "BLUE (2)"},
		{"negative enum", colorType, []byte{255, 255, 255, 255}, "NONE (-1)"},
		{"unknown enum", colorType, []byte{77, 0, 0, 0}, "77"},
		{"flags", flagsType, []byte{0xd, 0, 0, 0}, "A | C | D (0xd)"},
		{"not all flags", flagsType, []byte{0xf, 0, 0, 0}, "15"},
		{"pointer", pointerTo(&fakeType{kind: debuginfo.KindVoid}), words(0x77), "0x77"},
		{"null", pointerTo(i32Type), words(0), "0x0"},
		{"function", pointerTo(funcType), words(0x5000), "0x5000 <handler>"},
		{"into a symbol", pointerTo(&fakeType{kind: debuginfo.KindVoid}), words(0x5008), "0x5008 <handler+8>"},
		{"string", pointerTo(charType), words(0x2000), `0x2000 "hello"`},
		{"control characters", pointerTo(charType), words(0x4000), `0x4000 "bad\xff\e[2J\n\""`},
		{"bad string", pointerTo(charType), words(0x10), "0x10 (memory at 0x10 is not mapped)"},
		{"cut string", pointerTo(charType), words(0x2006), `0x2006 "world"... (memory at 0x200b is not mapped)`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := show(t, test.data, test.typ); got.Text != test.want || got.Unavailable != "" {
				t.Errorf("got %q, unavailable %q, want %q", got.Text, got.Unavailable, test.want)
			}
		})
	}
}

func TestAggregates(t *testing.T) {
	bits := structOf("struct bits", 4,
		debuginfo.Member{Name: "a", Type: u32Type, BitSize: 3, BitOffset: 0},
		debuginfo.Member{Name: "b", Type: i32Type, BitSize: 5, BitOffset: 3},
		debuginfo.Member{Name: "c", Type: u32Type, BitSize: 12, BitOffset: 8})
	derived := structOf("Derived", 8, base(0, structOf("Base", 4, field("x", 0, i32Type))), field("y", 4, i32Type))
	option := &fakeType{name: "Option<long>", kind: debuginfo.KindStruct, size: 16, variants: map[uint64]*fakeType{
		0: structOf("None", 16),
		1: structOf("Some", 16, field("__0", 8, i64Type)),
		2: structOf("Pair", 16, field("x", 8, i32Type), field("y", 12, i32Type)),
	}}
	for _, test := range []struct {
		name string
		typ  debuginfo.Type
		data []byte
		want string
	}{
		{"struct", workerType, words(3, 0x2000), `{id = 3, state = 0x2000 "hello"}`},
		{"repeats", arrayOf(i64Type, 7), words(1, 2, 0, 0, 0, 0, 0), "{1, 2, 0 <repeats 5 times>}"},
		{"few repeats", arrayOf(i64Type, 3), words(5, 5, 5), "{5, 5, 5}"},
		{"chars", arrayOf(charType, 8), []byte("abc\x00\x00\x00\x00\x00"), `"abc"`},
		{"chars after NUL", arrayOf(charType, 8), []byte("abc\x00\x00x\x00\x00"), `"abc" (and more after the NUL)`},
		{"chars without NUL", arrayOf(charType, 3), []byte("abc"), `"abc" (no NUL)`},
		{"binary", arrayOf(ucharType, 3), []byte{1, 2, 3}, `{1 '\x01', 2 '\x02', 3 '\x03'}`},
		{"empty", arrayOf(i32Type, 0), nil, "{}"},
		{"bit fields", bits, []byte{0x05 | 0x1f<<3, 0xbc, 0x0a, 0}, "{a = 5, b = -1, c = 2748}"},
		{"base", derived, words(5<<32 | 4), "{<Base> = {x = 4}, y = 5}"},
		{"none", option, words(0, 0), "None"},
		{"some", option, words(1, 42), "Some(42)"},
		{"struct variant", option, words(2, 9<<32|8), "Pair {x = 8, y = 9}"},
		{"unit", &fakeType{name: "()", kind: debuginfo.KindUint}, nil, "()"},
		{"empty struct", structOf("struct e", 0), nil, "{}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := show(t, test.data, test.typ); got.Text != test.want || got.Unavailable != "" {
				t.Errorf("got %q, unavailable %q, want %q", got.Text, got.Unavailable, test.want)
			}
		})
	}
}

func TestTopPointerShowsTheStructure(t *testing.T) {
	got := show(t, words(0x3000), pointerTo(workerType))
	if got.Text != "0x3000" || len(got.Fields) != 2 || got.Fields[0].Value.Text != "7" || got.Fields[1].Value.Text != `0x2000 "hello"` {
		t.Errorf("got %+v", got)
	}
	if got.Address == nil || *got.Address != 0x3000 {
		t.Errorf("address %v", got.Address)
	}
	dangling := show(t, words(0x9000), pointerTo(workerType))
	if want := "0x9000 (memory at 0x9000 is not mapped)"; dangling.Text != want || dangling.Fields != nil {
		t.Errorf("got %+v, want %q", dangling, want)
	}
}

func TestReference(t *testing.T) {
	ref := &fakeType{name: "worker &", kind: debuginfo.KindPointer, size: 8, elem: workerType, reference: true}
	if got, want := show(t, words(0x3000), ref).Text, `@0x3000: {id = 7, state = 0x2000 "hello"}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := show(t, words(0), ref).Text, "@0x0 (memory at 0x0 is not mapped)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReadFailureIsNotAZero(t *testing.T) {
	m := &fakeMemory{ranges: map[evidence.Addr][]byte{0x1000: words(1)}}
	for _, typ := range []debuginfo.Type{i32Type, workerType, arrayOf(i32Type, 4), pointerTo(i32Type), f64Type} {
		if got := At(m, 0x9000, typ, Options{}); got.Text != "" || got.Unavailable != "memory at 0x9000 is not mapped" {
			t.Errorf("%s: %+v", typ.Name(), got)
		}
	}
	// The second member is past the readable bytes.
	got := At(m, 0x1000, workerType, Options{})
	if want := "{id = 1, state = <memory at 0x1008 is not mapped>}"; got.Text != want {
		t.Errorf("got %q, want %q", got.Text, want)
	}
}

func TestBounds(t *testing.T) {
	node := structOf("struct node", 16)
	node.members = []debuginfo.Member{field("value", 0, i64Type), field("next", 8, pointerTo(node))}
	loop := show(t, words(5, 0x1000), node)
	if want := "{value = 5, next = 0x1000}"; loop.Text != want {
		t.Errorf("self-pointing list: %q, want %q", loop.Text, want)
	}
	huge := show(t, words(1, 2), arrayOf(i64Type, 1<<40))
	if huge.Elided != 1<<40-Defaults.Elements || len(huge.Fields) != Defaults.Elements {
		t.Errorf("huge array: %d fields, %d elided", len(huge.Fields), huge.Elided)
	}
	self := structOf("struct impossible", 8)
	self.members = []debuginfo.Member{field("self", 0, self), field("again", 0, self), field("more", 0, self)}
	if got := show(t, words(1), self); len(got.Text) > 4*Defaults.TextBytes {
		t.Errorf("a type that contains itself: %d bytes of text", len(got.Text))
	}
	if got := show(t, words(1), &fakeType{name: "int", kind: debuginfo.KindInt, size: 1 << 50}); got.Unavailable == "" {
		t.Errorf("an integer of 2^50 bytes: %+v", got)
	}
	long := At(&fakeMemory{ranges: map[evidence.Addr][]byte{0x1000: words(0x2000), 0x2000: []byte(strings.Repeat("x", 5000) + "\x00")}},
		0x1000, pointerTo(charType), Options{StringBytes: 10})
	if want := `0x2000 "xxxxxxxxxx"...`; long.Text != want {
		t.Errorf("got %q, want %q", long.Text, want)
	}
}
