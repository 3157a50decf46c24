package declare

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"diagnose/image/debuginfo"
)

// fakeType is a type as a hostile recording may have it.
type fakeType struct {
	name        string
	kind        debuginfo.Kind
	size, count int64
	elem        *fakeType
	members     []debuginfo.Member
}

func (t *fakeType) Name() string                    { return t.name }
func (t *fakeType) Kind() debuginfo.Kind            { return t.kind }
func (t *fakeType) Size() int64                     { return t.size }
func (t *fakeType) Count() int64                    { return t.count }
func (t *fakeType) Members() []debuginfo.Member     { return t.members }
func (t *fakeType) Enumerator(int64) (string, bool) { return "", false }
func (t *fakeType) Reference() bool                 { return false }
func (t *fakeType) Elem() debuginfo.Type {
	if t.elem == nil {
		return nil
	}
	return t.elem
}

func (t *fakeType) Variant(func(debuginfo.Member) (uint64, error)) (string, []debuginfo.Member, bool) {
	return "", nil, false
}

// hostile are names that debug information may have.
var hostile = []string{"a", "b", "len", "int", "x;int y", "\"#include", "a b", "", "__attribute__", "_dg_t1", "errno", "*/", "\n#pragma", "asm", "item"}

// fakeScope has a type for each name.
type fakeScope struct{ types []*fakeType }

func (s *fakeScope) of(name string) *fakeType {
	n := 0
	for _, c := range name {
		n += int(c)
	}
	return s.types[n%len(s.types)]
}

func (s *fakeScope) Variable(name string) (debuginfo.Type, bool, bool) {
	return s.of(name), len(name) == 1, len(name)%2 == 1
}
func (s *fakeScope) Constant(name string) (int64, bool) { return -1 << 63, len(name) == 4 }
func (s *fakeScope) Function(name string) (debuginfo.Prototype, bool) {
	return debuginfo.Prototype{Result: s.of(name), Parameters: []debuginfo.Type{nil, s.of(name + "1")}}, len(name) == 6
}
func (s *fakeScope) Type(name string) (debuginfo.Type, bool) { return s.of(name), true }

// types makes types of bytes: each is followed by its members.
func types(data []byte) []*fakeType {
	next := func() int64 {
		if len(data) == 0 {
			return 0
		}
		n := int64(int8(data[0]))
		data = data[1:]
		if n == 127 {
			n = 1 << 61
		}
		return n
	}
	list := make([]*fakeType, 8)
	for i := range list {
		list[i] = &fakeType{}
	}
	pick := func() *fakeType { return list[uint8(next())%8] }
	for _, t := range list {
		t.kind = debuginfo.Kind(uint8(next()) % 14)
		t.name = hostile[int(uint8(next()))%len(hostile)]
		t.size, t.count = next(), next()
		if next()%4 != 0 {
			t.elem = pick()
		}
		for range uint8(next()) % 6 {
			m := debuginfo.Member{Name: hostile[int(uint8(next()))%len(hostile)], Offset: next(), Type: pick(), Base: next() == 1}
			if next() == 2 {
				m.BitSize, m.BitOffset = next(), next()
			}
			t.members = append(t.members, m)
		}
	}
	return list
}

var identifier = regexp.MustCompile(`[A-Za-z_$][A-Za-z0-9_$]*`)

// checkNames fails if the declarations have a name that is neither C's, nor this package's, nor the code's.
func checkNames(t *testing.T, text string, names []string) {
	t.Helper()
	may := map[string]bool{"__asm__": true, "__attribute__": true, "packed": true, "__builtin_offsetof": true, "__int128": true, "L": true}
	for _, name := range names {
		may[name] = isName(name)
	}
	for _, name := range identifier.FindAllString(text, -1) {
		if !may[name] && !keywords[name] && !strings.HasPrefix(name, own) {
			t.Fatalf("%q is in the declarations:\n%s", name, text)
		}
	}
	if i := strings.IndexAny(text, "#\\?@`"); i >= 0 {
		t.Fatalf("%q is in the declarations:\n%s", text[i], text)
	}
}

func declareHostile(t *testing.T, data []byte) string {
	t.Helper()
	scope := &fakeScope{types(data)}
	names := []string{"a", "b", "len", "item", "int", "errno", "_dg_t1", "names", "called"}
	d, err := New(scope, Names{Objects: names, Types: append([]string{"four", "type"}, names...), Tags: []string{"struct item", "union a", "enum b", "struct x;int"},
		Macros: map[string]bool{"errno": true}}, "f", nil)
	if err != nil {
		return ""
	}
	inner, err := New(scope, Names{Objects: names, Types: names, Tags: []string{"struct item"}}, "0", d)
	if err != nil {
		return ""
	}
	text := d.Text() + "static void f(void) {\n" + inner.Text() + "}\n"
	checkNames(t, d.Text()+inner.Text(), append(names, "four", "type"))
	return text
}

func FuzzDeclare(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { declareHostile(t, data) })
}

var seeds = []string{
	"", "\x0a\x00\x10\x00\x01\x01\x03\x00\x00\x02\x00\x00\x02\x04\x03\x00\x00",
	"\x0a\x0e\x20\x00\x01\x01\x05\x00\x00\x01\x00\x00\x01\x08\x01\x00\x02\x03\x02\x02\x0c\x02\x00\x00\x0e\x10\x03\x00\x00" +
		"\x0c\x01\x08\x02\x01\x02\x00\x04\x02\x04\x00\x00\x00\x00\x09\x03\x08\x00\x01\x00\x00\x0a\x00\x08\x00\x00\x01\x03\x00\x00\x01\x00\x02\x05\x03",
	"\x0b\x01\x7f\x7f\x01\x00\x03\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x0c\x01\x7f\x7f\x01\x01\x00",
}

// TestHostileCompiles: declarations of types that contradict themselves are C that a compiler takes, or refuses with an error of the
// layout.
func TestHostileCompiles(t *testing.T) {
	path, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip(err)
	}
	for i, seed := range seeds {
		text := declareHostile(t, []byte(seed))
		cmd := exec.Command(path, "-x", "c", "-std=gnu11", "-fsyntax-only", "-w", "-")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("seed %d: %v\n%s\n%s", i, err, out, text)
		}
	}
}
