package verdict

import (
	"fmt"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

// madeType is a type made by hand; what the tests do not ask for is not there.
type madeType struct {
	debuginfo.Type
	name    string
	kind    debuginfo.Kind
	size    int64
	count   int64
	elem    debuginfo.Type
	members []debuginfo.Member
}

func (t *madeType) Name() string                { return t.name }
func (t *madeType) Kind() debuginfo.Kind        { return t.kind }
func (t *madeType) Size() int64                 { return t.size }
func (t *madeType) Count() int64                { return t.count }
func (t *madeType) Elem() debuginfo.Type        { return t.elem }
func (t *madeType) Members() []debuginfo.Member { return t.members }

// TestPartsOf: two members in one word are two variables, what is no member is not
// watched, and what no type is known of is words up to the last byte.
func TestPartsOf(t *testing.T) {
	number := &madeType{name: "int", kind: debuginfo.KindInt, size: 4}
	char := &madeType{name: "char", kind: debuginfo.KindChar, size: 1}
	job := &madeType{name: "struct job", kind: debuginfo.KindStruct, size: 24}
	job.members = []debuginfo.Member{
		{Name: "next", Offset: 0, Type: &madeType{name: "struct job *", kind: debuginfo.KindPointer, size: 8, elem: job}},
		{Name: "number", Offset: 8, Type: number}, {Name: "state", Offset: 12, Type: number}, {Name: "result", Offset: 16, Type: number},
	}
	name := &madeType{name: "struct name", kind: debuginfo.KindStruct, size: 12, members: []debuginfo.Member{
		{Name: "text", Offset: 0, Type: &madeType{name: "char [10]", kind: debuginfo.KindArray, size: 10, count: 10, elem: char}}}}
	for _, x := range []struct {
		name string
		typ  debuginfo.Type
		size uint64
		into evidence.Addr // where the pointer points
		want string
	}{
		{"members", job, 24, 0, "->next:8 ->number:4 ->state:4 ->result:4"},
		{"of no type", nil, 20, 0, "+0x0:8 +0x8:8 +0x10:4"},
		{"two in a row", job, 48, 0, "[0].next:8 [0].number:4 [0].state:4 [0].result:4 [1].next:8 [1].number:4 [1].state:4 [1].result:4"},
		{"what is behind", job, 30, 0, "->next:8 ->number:4 ->state:4 ->result:4 +0x18:6"},
		{"a pointer into it", job, 32, 8, "+0x0:8 ->next:8 ->number:4 ->state:4 ->result:4"},
		{"text", name, 12, 0, "+0x0:8 +0x8:4"},
		{"a number", number, 4, 0, ":4"},
	} {
		o := &evidence.HeapObject{Addr: 0x2000, Size: x.size}
		var got []string
		for _, p := range partsOf(o, typedPointer{o.Addr + x.into, x.typ}) {
			got = append(got, fmt.Sprintf("%s:%d", strings.TrimPrefix(p.target.Name, "heap object 0x2000"), p.target.Size))
			if at := p.target.Addr; at < o.Addr || at+evidence.Addr(p.target.Size) > o.Addr+evidence.Addr(o.Size) {
				t.Errorf("%s: %s lies outside", x.name, p.target.Name)
			}
		}
		if strings.Join(got, " ") != x.want {
			t.Errorf("%s: %s, want %s", x.name, strings.Join(got, " "), x.want)
		}
	}
}
