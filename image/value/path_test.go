package value

import (
	"testing"

	"diagnose/image/debuginfo"
)

func TestPath(t *testing.T) {
	union := &fakeType{name: "union u", kind: debuginfo.KindUnion, size: 8, members: []debuginfo.Member{
		field("small", 0, i32Type), field("big", 0, i64Type)}}
	outer := structOf("struct outer", 112, base(0, structOf("Base", 8, field("x", 0, i32Type), field("y", 4, i32Type))),
		field("u", 8, union), field("cfg", 16, configType), field("", 88, union), field("matrix", 96, arrayOf(arrayOf(i16Type, 2), 3)),
		debuginfo.Member{Name: "low", Offset: 108, Type: u32Type, BitSize: 3}, debuginfo.Member{Name: "high", Offset: 108, Type: u32Type, BitSize: 10, BitOffset: 8})
	declared := structOf("class condition", 0)
	if path, leaf, ok := Path(structOf("struct crew", 96, field("door", 0, structOf("class mutex", 0)), field("ready", 40, declared), field("here", 88, i32Type)), 40, 1); path != ".ready" || leaf != declared || !ok {
		t.Errorf("a member of a declared type: got %q %v %v", path, leaf, ok)
	}
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
