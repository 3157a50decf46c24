package provenance

import (
	"testing"

	"diagnose/image/debuginfo"
)

// declaredType is a type with the parts that arrayAt looks at.
type declaredType struct {
	debuginfo.Type
	kind        debuginfo.Kind
	size, count int64
	members     []debuginfo.Member
}

func (t *declaredType) Kind() debuginfo.Kind        { return t.kind }
func (t *declaredType) Size() int64                 { return t.size }
func (t *declaredType) Count() int64                { return t.count }
func (t *declaredType) Members() []debuginfo.Member { return t.members }

func number() *declaredType { return &declaredType{kind: debuginfo.KindInt, size: 4} }

func array(count int64) *declaredType {
	return &declaredType{kind: debuginfo.KindArray, size: 4 * count, count: count}
}

func TestArrayAt(t *testing.T) {
	inner := &declaredType{kind: debuginfo.KindStruct, size: 12, members: []debuginfo.Member{{Name: "n", Type: number()}, {Name: "pair", Offset: 4, Type: array(2)}}}
	either := &declaredType{kind: debuginfo.KindUnion, size: 16, members: []debuginfo.Member{{Name: "four", Type: array(4)}}}
	all := &declaredType{kind: debuginfo.KindStruct, size: 72, members: []debuginfo.Member{
		{Name: "first", Type: number()}, {Name: "links", Offset: 4, Type: array(8)}, {Name: "inner", Offset: 36, Type: inner},
		{Name: "either", Offset: 48, Type: either}, {Name: "base", Offset: 64, Base: true, Type: &declaredType{kind: debuginfo.KindStruct, size: 4,
			members: []debuginfo.Member{{Name: "one", Type: array(1)}}}}, {Name: "nothing", Offset: 68}}}
	for offset, want := range map[int64]struct {
		name string
		size int64
	}{
		0: {}, 4: {"links", 32}, 8: {}, 40: {"inner.pair", 8}, 44: {}, 48: {}, 64: {}, 68: {}, 72: {}, -4: {},
	} {
		name, found := arrayAt(all, offset, 0)
		if found == nil && want.size > 0 || found != nil && (name != want.name || found.Size() != want.size) {
			t.Errorf("at %d: %q, %v", offset, name, found)
		}
	}
}

// FuzzArrayAt: whatever types a file declares, the search ends.
func FuzzArrayAt(f *testing.F) {
	f.Add([]byte{3, 1, 4, 2, 0, 9, 4}, int64(4))
	f.Fuzz(func(t *testing.T, data []byte, offset int64) {
		all := &declaredType{kind: debuginfo.KindStruct, size: 1 << 20}
		list := []*declaredType{all}
		for i := 0; i+2 < len(data); i += 3 {
			next := &declaredType{kind: debuginfo.Kind(data[i] % 14), size: int64(int8(data[i+1])) << 8, count: int64(data[i+2])}
			if data[i]&0x80 != 0 {
				next = all // a struct within itself, which no compiler makes
			}
			of := list[int(data[i+2])%len(list)]
			of.members = append(of.members, debuginfo.Member{Name: "m", Offset: int64(int8(data[i+1])), Type: next})
			list = append(list, next)
		}
		arrayAt(all, offset, 0)
	})
}
