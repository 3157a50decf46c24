package debuginfo

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"diagnose/internal/crashtest"
)

// mixedProgram links units of gcc, which .debug_aranges lists, with one of
// clang, which it does not, in either order.
func mixedProgram(t *testing.T, flags ...string) string {
	t.Helper()
	if _, err := exec.LookPath("clang"); err != nil {
		t.Skip("not supported here: clang is not installed")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"unlisted.c": "int unlisted(int a) { int local = a * 3; return local ? local : 1; }\n",
		"listed.c":   "int listed(int a) { int local = a * 5; return local ? local : 1; }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	object := filepath.Join(dir, "unlisted.o")
	if out, err := exec.Command("clang", "-g", "-O1", "-fPIE", "-c", filepath.Join(dir, "unlisted.c"), "-o", object).CombinedOutput(); err != nil {
		t.Fatalf("clang: %v\n%s", err, out)
	}
	return crashtest.Compile(t, crashtest.Program{Source: "prog.c", Text: cText, Compiler: "gcc",
		Flags: append([]string{"-O1", object, filepath.Join(dir, "listed.c")}, flags...)})
}

func TestIncompleteAranges(t *testing.T) {
	for _, packing := range []string{"-gz=none", "-gz=zlib"} {
		t.Run(packing, func(t *testing.T) {
			exe := mixedProgram(t, packing)
			info := open(t, exe)
			main, unlisted := symbol(t, info, "main").Value, symbol(t, info, "unlisted").Value
			wantFunction(t, info, main, "main")
			for _, pc := range []uint64{0, 1 << 40, ^uint64(0)} { // hints that lead nowhere
				if p, err := info.placeAt(pc); p.unit != nil || err != nil {
					t.Errorf("%#x: %+v, %v", pc, p, err)
				}
			}
			array := symbol(t, info, "global_array").Value
			if v, ok, err := info.GlobalAt(array, 0); err != nil || !ok || v.Name != "global_array" {
				t.Errorf("global_array: %+v, %v, %v", v, ok, err)
			}
			if next := info.main.index.chains[secInfo].next; next >= info.main.sizeOf(secInfo) {
				t.Error("all units were read for a listed address, or a variable of its unit")
			}
			wantFunction(t, info, symbol(t, info, "listed").Value, "listed")
			if units := info.listedAt(unlisted); len(units) > 0 {
				t.Error("clang's unit is listed: nothing is tested")
			}
			wantFunction(t, info, unlisted, "unlisted")
			wantFunction(t, info, main, "main")
			compareWithGDB(t, info, exe, sample(info, 600))
			units, err := info.main.units()
			if err != nil || len(units) != 3 {
				t.Fatalf("%d units, %v", len(units), err)
			}
			for _, direct := range info.main.index.direct {
				if at, err := info.main.unitAt(direct.first); err != nil || at != direct || units[0] != direct && units[2] != direct {
					t.Errorf("the unit at %#x is in the index twice", direct.offset)
				}
			}
		})
	}
}

func wantFunction(t *testing.T, info *Info, pc uint64, want string) {
	t.Helper()
	if f, err := info.FunctionAt(pc); err != nil || f == nil || f.Name != want {
		t.Errorf("%#x: %+v, %v; want %s", pc, f, err, want)
	}
}

// TestLyingAranges: a list that contradicts the units is ignored.
func TestLyingAranges(t *testing.T) {
	seed := seedSections(t, "gcc", "-O2")
	le := binary.LittleEndian
	chains := func(aranges []byte) (list []string) {
		sections := map[sectionID][]byte{}
		for id, data := range seed {
			sections[id] = data
		}
		sections[secAranges] = aranges
		info := fake(sections)
		for pc := uint64(0x1000); pc < 0x1600; pc++ {
			calls, err := info.CallsAt(pc)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range calls {
				list = append(list, fmt.Sprint(pc, c.Function.Name, c.Inlined, c.Position))
			}
		}
		return list
	}
	want := chains(nil)
	if len(want) < 100 || len(seed[secAranges]) < 48 {
		t.Fatalf("%d calls, %d bytes of .debug_aranges", len(want), len(seed[secAranges]))
	}
	for name, change := range map[string]func(b []byte) []byte{
		"none":        func(b []byte) []byte { return b },
		"cut":         func(b []byte) []byte { return b[:len(b)-5] },
		"version":     func(b []byte) []byte { b[4] = 7; return b },
		"no unit":     func(b []byte) []byte { le.PutUint32(b[6:], 77); return b },
		"beyond":      func(b []byte) []byte { le.PutUint32(b[6:], 1<<30); return b },
		"long":        func(b []byte) []byte { le.PutUint32(b, 1<<30); return b },
		"all":         func(b []byte) []byte { le.PutUint64(b[16:], 1); le.PutUint64(b[24:], 1<<40); return b },
		"overflowing": func(b []byte) []byte { le.PutUint64(b[24:], ^uint64(0)); return b },
		"unlisted":    func(b []byte) []byte { le.PutUint64(b[24:], 1); return b },
	} {
		got := chains(change(bytes.Clone(seed[secAranges])))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %d calls, want %d", name, len(got), len(want))
		}
	}
}
