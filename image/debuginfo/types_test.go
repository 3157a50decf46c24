package debuginfo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// checkLayouts compares members with what the program itself prints of
// offsetof and sizeof.
func checkLayouts(t *testing.T, exe string, info *Info) {
	out, err := exec.Command(exe).Output()
	if err != nil {
		t.Fatal(err)
	}
	all := typeNamed(t, info, "struct all")
	members := flatten(all.Members(), 0)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, line := range lines[:len(lines)-1] {
		var name string
		var offset, size int64
		if _, err := fmt.Sscanf(line, "%s %d %d", &name, &offset, &size); err != nil {
			t.Fatal(line, err)
		}
		m, ok := members[name]
		if !ok || m.Offset != offset || m.Type.Size() != size {
			t.Errorf("%s: %+v (size %d), the program has %d, %d", name, m, sizeOf(m.Type), offset, size)
		}
	}
	if want := fmt.Sprintf("all %d", all.Size()); lines[len(lines)-1] != want {
		t.Errorf("%q, want %q", want, lines[len(lines)-1])
	}
}

func sizeOf(t Type) int64 {
	if t == nil {
		return -1
	}
	return t.Size()
}

// flatten lists members by name, those of anonymous members included.
func flatten(list []Member, base int64) map[string]Member {
	all := map[string]Member{}
	for _, m := range list {
		m.Offset += base
		if m.Name == "" {
			for name, inner := range flatten(m.Type.Members(), m.Offset) {
				all[name] = inner
			}
			continue
		}
		all[m.Name] = m
	}
	return all
}

func typeNamed(t *testing.T, info *Info, name string) Type {
	t.Helper()
	typ, ok, err := info.TypeNamed(name, symbol(t, info, "main").Value)
	if err != nil || !ok {
		t.Fatalf("type %s: %v, %v", name, ok, err)
	}
	return typ
}

func checkTypeNames(t *testing.T, info *Info) {
	want := map[string]string{
		"b": "_Bool", "ld": "long double", "grid": "int [4][3]", "nodes": "struct node [2]",
		"e": "union either", "cb": "callback", "color": "enum color", "p": "void *",
		"text": "const char *", "v": "volatile int", "rows": "int (*)[3]",
		"chain": "const struct node * const *", "tail": "char []",
	}
	members := flatten(typeNamed(t, info, "all").Members(), 0)
	for name, typ := range want {
		got := members[name].Type.Name()
		got = strings.TrimSuffix(strings.Replace(got, "[0]", "[]", 1), "") // clang 14 counts no elements
		if got != typ {
			t.Errorf("%s is %q, want %q", name, got, typ)
		}
	}
	checkKinds(t, members)
}

func checkKinds(t *testing.T, members map[string]Member) {
	t.Helper()
	kinds := map[string]Kind{"b": KindBool, "c": KindChar, "s": KindInt, "f": KindFloat, "grid": KindArray,
		"e": KindUnion, "cb": KindPointer, "color": KindEnum, "p": KindPointer, "v": KindInt, "wide": KindUint}
	for name, kind := range kinds {
		if got := members[name].Type.Kind(); got != kind {
			t.Errorf("%s has kind %d, want %d", name, got, kind)
		}
	}
	grid := members["grid"].Type
	if grid.Count() != 4 || grid.Elem().Count() != 3 || grid.Elem().Size() != 12 || grid.Elem().Elem().Kind() != KindInt {
		t.Errorf("grid: %d of %v", grid.Count(), grid.Elem().Name())
	}
	if p := members["p"].Type; p.Elem() != nil {
		t.Errorf("void * points to %v", p.Elem().Name())
	}
	if target := members["cb"].Type.Elem(); target == nil || target.Kind() != KindFunc || target.Name() != "int (int, const char *)" {
		t.Errorf("callback points to %v", target)
	}
	for value, name := range map[int64]string{0: "RED", 5: "GREEN", -2: "BLUE", 1<<32 - 2: "BLUE"} {
		if got, _ := members["color"].Type.Enumerator(value); got != name {
			t.Errorf("color %d is %q, want %q", value, got, name)
		}
	}
	wide, rest := members["wide"], members["rest"]
	if wide.BitSize != 40 || wide.BitOffset != 0 || rest.BitSize != 24 || rest.BitOffset != 0 || rest.Offset != wide.Offset+5 {
		t.Errorf("bit fields %+v, %+v", wide, rest)
	}
	node := members["nodes"].Type.Elem()
	if flags := node.Members()[3]; flags.Name != "kind" || flags.BitSize != 5 || flags.BitOffset != 3 || flags.Offset != 12 {
		t.Errorf("kind is %+v", flags)
	}
	if next := node.Members()[0].Type.Elem(); next.Name() != node.Name() {
		t.Errorf("a node points to %s", next.Name())
	}
}

func checkCxxTypes(t *testing.T, info *Info) {
	both := typeNamed(t, info, "Both")
	var text []string
	for _, m := range both.Members() {
		text = append(text, fmt.Sprintf("%s %s @%d %v", m.Name, m.Type.Name(), m.Offset, m.Base))
	}
	want := []string{"Left Left @0 true", "Right Right @8 true", "own int @16 false", "ref int & @24 false",
		"rref int && @32 false", "data int Both::* @40 false", "code int (Both::*)(Both *, int) @48 false"}
	if strings.Join(text, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(text, "\n"))
	}
	if m := both.Members()[3]; !m.Type.Reference() || m.Type.Kind() != KindPointer {
		t.Error("a reference is none")
	}
	if m := both.Members()[6]; m.Type.Size() != 16 {
		t.Errorf("a pointer to a member function has %d bytes", m.Type.Size())
	}
	if e := typeNamed(t, info, "ns::E"); e.Kind() != KindEnum || e.Size() != 2 || e.Name() != "ns::E" {
		t.Errorf("ns::E: %v, %d bytes", e.Kind(), e.Size())
	}
	virtual := typeNamed(t, info, "Virtual")
	for _, m := range virtual.Members() {
		if m.Base {
			t.Error("a virtual base has a fixed place")
		}
	}
}

func checkRustTypes(t *testing.T, info *Info) {
	shape := typeNamed(t, info, "prog::Shape")
	var seen []string
	for tag := range uint64(1 << 8) {
		name, members, ok := shape.Variant(func(Member) (uint64, error) { return tag | 0x8000000000000000, nil })
		if !ok {
			t.Fatal("an enum without variants")
		}
		if len(seen) == 0 || seen[len(seen)-1] != name {
			seen = append(seen, name)
		}
		if name == "Rect" && (len(members) != 2 || members[0].Name != "w" || members[1].Type.Size() != 4) {
			t.Errorf("Rect has %+v", members)
		}
	}
	for _, name := range []string{"Unit", "Circle", "Rect", "Named"} {
		if !strings.Contains(strings.Join(seen, " "), name) {
			t.Errorf("variants %q", seen)
		}
	}
	name, members, ok := shape.Variant(func(Member) (uint64, error) { return 0, errors.New("gone") })
	if name != "" || members != nil || !ok {
		t.Error("an unreadable discriminant chose a variant")
	}
	holder := flatten(typeNamed(t, info, "prog::Holder").Members(), 0)
	if s := holder["s"].Type; s.Name() != "&str" || len(s.Members()) != 2 || s.Members()[0].Name != "data_ptr" {
		t.Errorf("&str is %q", s.Name())
	}
	if l := holder["list"].Type; l.Name() != "&[u16]" || l.Size() != 16 {
		t.Errorf("&[u16] is %q", l.Name())
	}
	if tuple := holder["t"].Type; tuple.Name() != "(i32, u8)" || tuple.Members()[0].Name != "__0" && tuple.Members()[1].Name != "__0" {
		t.Errorf("the tuple is %q: %+v", tuple.Name(), tuple.Members())
	}
}

func TestVariablesInScope(t *testing.T) {
	_, info := build(t, variants()[0])
	work := symbol(t, info, "work")
	deepest := map[string]int{}
	names := map[string]bool{}
	for pc := work.Value; pc < work.Value+work.Size; pc++ {
		calls, err := info.CallsAt(pc)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range calls {
			vars, err := info.VariablesAt(call, pc)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range vars {
				names[call.Function.Name+"."+v.Name] = true
				deepest[v.Name] = max(deepest[v.Name], v.Depth)
				if len(v.Location) == 0 || v.Type == nil || len(v.FrameBase) == 0 {
					t.Errorf("%s.%s has location %x, type %v, frame base %x", call.Function.Name, v.Name, v.Location, v.Type, v.FrameBase)
				}
			}
		}
	}
	for _, want := range []string{"work.n", "work.c", "work.calls", "work.sum", "work.p", "work.v", "work.w", "twice.x", "twice.y", "quad.z"} {
		if !names[want] {
			t.Errorf("%s is never in scope, of %v", want, names)
		}
	}
	if deepest["sum"] != 0 || deepest["p"] != 1 || deepest["v"] != 2 || deepest["w"] != 3 {
		t.Errorf("depths %v", deepest)
	}
}

const orderText = `
#include <stdio.h>
struct session { int id; } sessions[2];
volatile int sink;
static inline __attribute__((always_inline)) void handle(struct session *session, const char *from, int third) {
  int one = session->id + third, two = from[0] + one, three = one * two;
  sink = one; sink = two; sink = three;
}
__attribute__((noinline)) void worker(struct session *s, const char *name) { handle(s, name, sink); }
int main(int argc, char **argv) { worker(&sessions[argc], argv[0]); return 0; }
`

// TestOrderOfDeclaration: compilers write the variables of an inlined call in
// another order than the program declares them.
func TestOrderOfDeclaration(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		_, info := build(t, variant{compiler, "order.c", orderText, compiler, []string{"-O2"}})
		worker, seen := symbol(t, info, "worker"), false
		for pc := worker.Value; pc < worker.Value+worker.Size; pc++ {
			calls, err := info.CallsAt(pc)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range calls {
				if call.Function.Name != "handle" {
					continue
				}
				seen = true
				vars, err := info.VariablesAt(call, pc)
				if err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, v := range vars {
					names = append(names, v.Name)
				}
				if want := "session from third one two three"; strings.Join(names, " ") != want {
					t.Fatalf("%s at %#x: got %s, want %s", compiler, pc, names, want)
				}
			}
		}
		if !seen {
			t.Errorf("%s: handle was not inlined", compiler)
		}
	}
}

func checkGlobals(t *testing.T, info *Info) {
	main := symbol(t, info, "main").Value
	for symbolName, want := range map[string]string{"global_array": "int [4][3]", "everything": "struct all", "counter": "int", "handle": "struct opaque *"} {
		addr := symbol(t, info, symbolName).Value
		for _, hint := range []uint64{0, main} {
			g, ok, err := info.GlobalAt(addr, hint)
			if err != nil || !ok || g.Name != symbolName || g.Type.Name() != want {
				t.Errorf("%#x: %+v, %v, %v; want %s", addr, g, ok, err, symbolName)
				continue
			}
			if !bytes.Equal(g.Location, addressPattern(addr)) {
				t.Errorf("%s lives at %x", symbolName, g.Location)
			}
		}
		if g, ok, err := info.GlobalNamed(symbolName, 0); err != nil || !ok || g.Name != symbolName {
			t.Errorf("%s by name: %+v, %v, %v", symbolName, g, ok, err)
		}
	}
	offset := symbol(t, info, "tls_var").Value
	g, ok, err := info.ThreadLocalAt(offset, main)
	// gcc 12 writes an address, not an offset, into a split unit's .debug_addr
	if split := info.main.file.Section(".debug_addr") != nil && firstUnit(t, info).kind == utSkeleton; split {
		ok, g.Name = true, "tls_var"
	}
	if err != nil || !ok || g.Name != "tls_var" {
		t.Errorf("thread-local at %#x: %+v, %v, %v", offset, g, ok, err)
	}
	if _, ok, err := info.GlobalAt(symbol(t, info, "everything").Value+1, main); ok || err != nil {
		t.Errorf("the middle of a variable is one: %v", err)
	}
	all, err := info.GlobalsAt(main)
	if err != nil || len(all) != 5 {
		t.Errorf("%d globals of the unit, %v", len(all), err)
	}
}

func TestCxxGlobalsAreQualified(t *testing.T) {
	_, info := build(t, variant{"", "prog.cc", cxxText, "g++", []string{"-O0", "-std=c++17"}})
	for mangled, want := range map[string]string{"_ZN2ns7visibleE": "ns::visible", "_ZN2ns12_GLOBAL__N_16hiddenE": "ns::(anonymous namespace)::hidden"} {
		g, ok, err := info.GlobalAt(symbol(t, info, mangled).Value, 0)
		if err != nil || !ok || g.Name != want {
			t.Errorf("%s: %+v, %v, %v", mangled, g, ok, err)
		}
		if g, ok, err := info.GlobalNamed(want, symbol(t, info, "main").Value); err != nil || !ok || g.Name != want {
			t.Errorf("%s by name: %+v, %v, %v", want, g, ok, err)
		}
	}
}

// TestGlobalsOfManyKinds: a unit with more than 127 abbreviations has codes of two bytes, whose second one, and the bytes before a location, may
// be the codes of others.
func TestGlobalsOfManyKinds(t *testing.T) {
	text := "#include <map>\n#include <memory>\n#include <string>\n#include <thread>\n#include <vector>\nstd::map<int, std::string> names;\n"
	const most = 250
	for i := range most {
		text += fmt.Sprintf("%*sstruct T%d { int n; void *slots[8]; } t%d;\n", i%100, "", i, i)
	}
	_, info := build(t, variant{"", "prog.cc", text + "int main() { std::thread([] {}).join(); }\n", "g++", []string{"-O0", "-pthread"}})
	for i := range most {
		name := fmt.Sprintf("t%d", i)
		if g, ok, err := info.GlobalAt(symbol(t, info, name).Value, 0); err != nil || !ok || g.Name != name {
			t.Errorf("%s: %+v, %v, %v", name, g, ok, err)
		}
	}
}

func TestCallSiteParameters(t *testing.T) {
	_, info := build(t, variant{"", "prog.c", `
int __attribute__((noipa)) callee(int a, int b) { __asm__ volatile("" :: "r"(a), "r"(b) : "memory"); return a; }
int __attribute__((noipa)) caller(int x) { int r = callee(x + 0, 42); __asm__ volatile("" ::: "memory"); return r + 1; }
int main(int argc, char **argv) { return caller(argc); }`, "gcc", []string{"-O2"}})
	caller := symbol(t, info, "caller")
	found := 0
	for pc := caller.Value + 1; pc <= caller.Value+caller.Size; pc++ {
		expr, ok, err := info.CallSiteParameter(pc, 4) // rsi
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			found++
			if !bytes.Equal(expr, []byte{0x08, 42}) { // DW_OP_const1u
				t.Errorf("rsi held %x", expr)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d call sites with a value for rsi", found)
	}
}

func TestTypeDeclaredElsewhere(t *testing.T) {
	_, info := build(t, variants()[0])
	g, ok, err := info.GlobalNamed("handle", 0)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	target := g.Type.Elem()
	if target == nil || target.Kind() != KindStruct || target.Size() != 0 || len(target.Members()) != 0 {
		t.Errorf("an undefined struct is %+v", target)
	}
	if _, ok, err := info.TypeNamed("no_such_type", 0); ok || err != nil {
		t.Errorf("found what does not exist: %v", err)
	}
}

func TestCanonical(t *testing.T) {
	for name, want := range map[string]string{
		"f<long int>": "f<long>", "f<long unsigned int, int>": "f<unsigned long, int>",
		"printer": "printer", "f<short int*>": "f<short*>", "f<unsigned char>": "f<unsigned char>",
		"f<long long unsigned int>": "f<unsigned long long>", "point<int>": "point<int>", "f<unsigned int>": "f<unsigned int>",
		"interval<long double>": "interval<long double>", "f<<lambda(long int)> >": "f<<lambda(long int)> >",
	} {
		if got := canonical(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
}

func TestPortableExpressions(t *testing.T) {
	_, info := build(t, variant{"", "prog.c", cText, "clang", []string{"-O0", "-gdwarf-5"}})
	counter := symbol(t, info, "counter").Value
	g, ok, err := info.GlobalAt(counter, 0)
	if err != nil || !ok || len(g.Location) != 9 || binary.LittleEndian.Uint64(g.Location[1:]) != counter {
		t.Errorf("counter: %x, %v, %v", g.Location, ok, err)
	}
}

func firstUnit(t *testing.T, info *Info) *unit {
	t.Helper()
	units, err := info.main.units()
	if err != nil || len(units) == 0 {
		t.Fatalf("%d units, %v", len(units), err)
	}
	return units[0]
}
