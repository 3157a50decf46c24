package value

import (
	"encoding/binary"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

func TestLocations(t *testing.T) {
	memory := &fakeMemory{ranges: map[evidence.Addr][]byte{0x7000: words(11, 22, 33, 0x7008)}}
	frame := &Frame{Memory: memory, CFA: 0x7010, Module: &image.Module{Bias: 0x6000}}
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
			if got.Value.Text != test.want || got.Location != test.location || got.Value.Why() != test.unavailable {
				t.Errorf("got %q at %q, unavailable %q, want %q at %q, %q",
					got.Value.Text, got.Location, got.Value.Why(), test.want, test.location, test.unavailable)
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
