package debuginfo

import (
	"debug/dwarf"
	"debug/elf"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
)

const anyNumber = 1 << 20

// lineOf is the number of the line of a source text that contains a string.
func lineOf(t *testing.T, text, part string) int {
	t.Helper()
	for i, line := range strings.Split(text, "\n") {
		if strings.Contains(line, part) {
			return i + 1
		}
	}
	t.Fatalf("no line has %q", part)
	return 0
}

func standardReader(t *testing.T, exe string) *dwarf.Data {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	d, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// standardLine returns the addresses of a line in debug/dwarf's rows.
func standardLine(t *testing.T, d *dwarf.Data, file string, line int) map[uint64]bool {
	t.Helper()
	found := map[uint64]bool{}
	units := d.Reader()
	for unit, err := units.Next(); unit != nil && err == nil; unit, err = units.Next() {
		units.SkipChildren()
		rows, err := d.LineReader(unit)
		if err != nil || rows == nil {
			continue
		}
		var row dwarf.LineEntry
		for rows.Next(&row) != io.EOF {
			if row.IsStmt && !row.EndSequence && row.Line == line && strings.HasSuffix(row.File.Name, "/"+file) {
				found[row.Address] = true
			}
		}
	}
	return found
}

// standardInlined returns the calls of an inlined C function that debug/dwarf
// finds.
func standardInlined(d *dwarf.Data, name string) (list []uint64) {
	abstract := map[dwarf.Offset]bool{}
	each := func(do func(*dwarf.Entry)) {
		for r := d.Reader(); ; {
			e, err := r.Next()
			if err != nil || e == nil {
				return
			}
			do(e)
		}
	}
	each(func(e *dwarf.Entry) {
		if full, _ := e.Val(dwarf.AttrName).(string); e.Tag == dwarf.TagSubprogram && full == name {
			abstract[e.Offset] = true
		}
	})
	each(func(e *dwarf.Entry) {
		of, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if e.Tag != dwarf.TagInlinedSubroutine || !ok || !abstract[of] {
			return
		}
		if at, ok := e.Val(dwarf.AttrEntrypc).(uint64); ok {
			list = append(list, at)
		} else if ranges, err := d.Ranges(e); err == nil && len(ranges) > 0 {
			list = append(list, ranges[0][0])
		}
	})
	slices.Sort(list)
	return slices.Compact(list)
}

// The code of a line and of an inlined function is found in every form of
// DWARF, and agrees with debug/dwarf, if that can read it.
func TestPlacesOfSource(t *testing.T) {
	line := lineOf(t, cText, "int v = quad(p->value)")
	for _, v := range variants() {
		if !strings.HasPrefix(v.name, "c-") {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			exe, info := build(t, v)
			split := slices.Contains(v.flags, "-gsplit-dwarf")
			checkLine(t, standardReader(t, exe), info, line)
			for _, name := range []string{"twice", "quad"} {
				got, err := info.InlinedCode(func(f *Function) bool { return f.Name == name }, anyNumber)
				if err != nil || len(got) == 0 {
					t.Fatalf("%s is inlined at %#x, %v", name, got, err)
				}
				if want := standardInlined(standardReader(t, exe), name); !split && !slices.Equal(got, want) {
					t.Errorf("%s is inlined at %#x, want %#x", name, got, want)
				}
			}
			if got, _ := info.InlinedCode(func(f *Function) bool { return f.Name == "twice" }, 1); len(got) != 1 {
				t.Errorf("at most 1 address: %#x", got)
			}
			if got, _ := info.InlinedCode(func(f *Function) bool { return f.Name == "work" }, anyNumber); len(got) != 0 {
				t.Errorf("work, which is not inlined, is inlined at %#x", got)
			}
		})
	}
}

func checkLine(t *testing.T, d *dwarf.Data, info *Info, line int) {
	t.Helper()
	got, known, err := info.AddressesOf("./prog.c", line, anyNumber)
	if err != nil || !known || len(got) == 0 {
		t.Fatalf("line %d is at %#x, known %v, %v", line, got, known, err)
	}
	want := standardLine(t, d, "prog.c", line)
	for _, at := range got {
		if !want[at] {
			t.Errorf("line %d: %#x is no statement of it; these are: %#x", line, at, slices.Sorted(maps.Keys(want)))
		}
	}
	if p, ok, _ := info.PositionAt(got[0]); !ok || p.Line != line {
		t.Errorf("%#x is of line %d, want %d", got[0], p.Line, line)
	}
	if none, known, _ := info.AddressesOf("prog.c", 1, anyNumber); len(none) != 0 || !known {
		t.Errorf("line 1, which has no code, is at %#x; known %v", none, known)
	}
	if none, known, _ := info.AddressesOf("rog.c", line, anyNumber); len(none) != 0 || known {
		t.Errorf("a file that there is not has code at %#x; known %v", none, known)
	}
}

// A line begins where its first statement is, and again after code of another line
// or file.
func TestLineBegins(t *testing.T) {
	rows := []lineRow{{pc: 0x10, line: 7, stmt: true}, {pc: 0x14, line: 7, stmt: true}, {pc: 0x18, line: 8, stmt: true}, {pc: 0x20, line: 7},
		{pc: 0x24, line: 7, stmt: true}, {pc: 0x28}, {pc: 0x30, line: 7, stmt: true}, {pc: 0x34, line: 9}, {pc: 0x38, line: 7}}
	for most, want := range map[int][]uint64{anyNumber: {0x10, 0x24, 0x30}, 2: {0x10, 0x24}} {
		if got := appendBegins(nil, rows, 7, most, func(row *lineRow) bool { return row.stmt }); !slices.Equal(got, want) {
			t.Errorf("line 7 begins at %#x, want %#x", got, want)
		}
	}
}

// C++ names are qualified, and the mangled names are given too.
func TestInlinedFunctionsHaveNames(t *testing.T) {
	for _, v := range variants() {
		if v.name != "cxx-clang-O2" && v.name != "rust-O2" {
			continue
		}
		_, info := build(t, v)
		qualified, linked := false, false
		if _, err := info.InlinedCode(func(f *Function) bool {
			qualified = qualified || strings.Contains(f.Name, "::")
			linked = linked || f.Linkage != ""
			return false
		}, 1); err != nil || !qualified || !linked {
			t.Errorf("%s: qualified %v, linked %v, %v", v.name, qualified, linked, err)
		}
	}
}
