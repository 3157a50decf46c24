package debuginfo

import (
	"fmt"
	"slices"
	"testing"

	"diagnose/image/object"
	"diagnose/internal/crashtest"
)

const classesText = `
namespace io { struct Reader { virtual ~Reader() {} virtual int get() { return 1; } int n; }; }
struct Plain { int n; };
struct Shared : virtual io::Reader { int get() override { return 2; } virtual int peek() { return 3; } };
struct Disk : Plain, Shared { int peek() override { return Plain::n + 4; } };
struct Outer; // a declaration alone
typedef const Disk disk_t;
disk_t *made = new Disk;
Outer *outer;
Plain *plain;
int main() { return const_cast<Disk *>(made)->peek() + const_cast<Disk *>(made)->get(); }
`

// The bases of a class are known through typedefs, virtual ones too, and its functions by their place in the virtual table.
func TestClasses(t *testing.T) {
	for _, compiler := range []string{"g++", "clang++"} {
		for _, version := range []string{"-gdwarf-4", "-gdwarf-5"} {
			t.Run(compiler+version, func(t *testing.T) {
				exe := crashtest.Compile(t, crashtest.Program{Source: "classes.cc", Text: classesText, Compiler: compiler, Flags: []string{"-g", version}})
				file, err := object.Open(exe)
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				info, err := Open(file, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer info.Close()
				checkClasses(t, info)
				main, _ := file.SymbolNamed("main")
				checkVirtuals(t, info, main.Value)
			})
		}
	}
}

func checkClasses(t *testing.T, info *Info) {
	t.Helper()
	for name, want := range map[string]string{
		"made":  "Disk [Plain Shared io::Reader] true true",
		"plain": "Plain [] false true",
		"outer": "Outer [] false false",
	} {
		v, ok, err := info.GlobalNamed(name, 0)
		if !ok || err != nil {
			t.Fatal(name, err)
		}
		c, ok := ClassOf(v.Type.Elem())
		if got := fmt.Sprint(c.Name, " ", c.Ancestors, " ", c.Polymorphic, " ", c.Complete); !ok || got != want {
			t.Errorf("%s is a %s, want %s", name, got, want)
		}
		if _, ok := ClassOf(v.Type); ok {
			t.Errorf("the pointer %s is a class", name)
		}
	}
	if _, ok := ClassOf(nil); ok {
		t.Error("no type is a class")
	}
}

func checkVirtuals(t *testing.T, info *Info, pc uint64) {
	t.Helper()
	const get = 2 // after the two destructors
	for slot, want := range map[int][]string{get: {"io::Reader::get"}, 99: nil} {
		list, err := info.VirtualsAt(pc, slot)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, v := range list {
			names = append(names, v.Class.Name+"::"+v.Name)
		}
		if want == nil && names != nil || want != nil && !slices.Contains(names, want[0]) {
			t.Errorf("slot %d: %v, want %v", slot, names, want)
		}
	}
}
