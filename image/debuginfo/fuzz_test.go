package debuginfo

import (
	"debug/dwarf"
	"errors"
	"testing"
	"time"

	"diagnose/image/object"
	"diagnose/internal/crashtest"
)

// fake makes an Info from sections alone.
func fake(sections map[sectionID][]byte) *Info {
	i := newInfo(&object.File{}, nil)
	for id := range sectionCount {
		i.main.load[id] = func() ([]byte, error) { return sections[id], nil }
	}
	i.rawStatics = func() ([]rawStatic, error) { return nil, nil }
	return i
}

var fuzzed = []sectionID{secInfo, secAbbrev, secLine, secStr, secLineStr, secRnglists, secLoclists, secRanges, secLoc, secAddr, secStrOffsets, secAranges}

// seedSections compiles a program and returns its debug sections.
func seedSections(f testing.TB, compiler string, flags ...string) map[sectionID][]byte {
	exe := crashtest.Compile(f, crashtest.Program{Source: "prog.c", Text: cText, Compiler: compiler, Flags: flags})
	file, err := object.Open(exe)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { file.Close() })
	sections := map[sectionID][]byte{}
	for _, id := range fuzzed {
		if s := file.Section(sectionNames[id]); s != nil {
			if sections[id], err = s.Data(); err != nil {
				f.Fatal(err)
			}
		}
	}
	return sections
}

// FuzzInfo gives the readers of DIEs damaged sections of a real program; the
// damage is data that overwrites a section at an offset.
func FuzzInfo(f *testing.F) {
	seeds := []map[sectionID][]byte{
		seedSections(f, "gcc", "-O2"),
		seedSections(f, "gcc", "-O2", "-gdwarf-4"),
		seedSections(f, "clang", "-O2", "-gdwarf-5"),
	}
	f.Add(uint8(0), uint8(0), uint16(0), []byte{})
	f.Add(uint8(0), uint8(0), uint16(12), []byte{0xff, 0xff, 0xff, 0xff})
	f.Add(uint8(1), uint8(1), uint16(3), []byte{0x21, 0x80, 0x80})
	f.Add(uint8(2), uint8(5), uint16(8), []byte{1, 0xff, 0xff, 0xff, 0x7f})
	f.Add(uint8(0), uint8(0), uint16(200), []byte{0x91, 0x91, 0x91, 0x91, 0x91, 0x91})
	f.Fuzz(func(t *testing.T, seed, section uint8, offset uint16, data []byte) {
		sections := map[sectionID][]byte{}
		for id, original := range seeds[int(seed)%len(seeds)] {
			sections[id] = append([]byte(nil), original...)
		}
		target := sections[fuzzed[int(section)%len(fuzzed)]]
		if int(offset) < len(target) {
			copy(target[offset:], data)
		}
		exercise(t, fake(sections))
	})
}

// exercise calls every method of an Info. Nothing may panic or hang, and every
// error must give its location.
func exercise(t *testing.T, i *Info) {
	deadline := time.Now().Add(20 * time.Second)
	check := func(err error) {
		var format *object.FormatError
		var unsupported *UnsupportedError
		if err != nil && !errors.As(err, &format) && !errors.As(err, &unsupported) {
			t.Errorf("untyped error %v", err)
		}
		if time.Now().After(deadline) {
			t.Fatal("took too long")
		}
	}
	units, err := i.main.units()
	if err != nil {
		check(err)
		return
	}
	for pc := uint64(0x1000); pc < 0x1400; pc += 13 {
		exerciseAt(i, pc, check)
	}
	for _, u := range units {
		exerciseUnit(i, u, check)
	}
	all, _, err := i.TypeNamed("struct all", 0x1139)
	check(err)
	ClassOf(all)
	_, _, err = i.AddressesOf("prog.c", 40, anyNumber)
	check(err)
	_, err = i.InlinedCode(func(f *Function) bool { return f.Name == "twice" }, anyNumber)
	check(err)
	for _, err := range i.Problems() {
		check(err)
	}
}

func exerciseAt(i *Info, pc uint64, check func(error)) {
	_, err := i.VirtualsAt(pc, 2)
	check(err)
	_, _, err = i.PositionAt(pc)
	check(err)
	_, err = i.FunctionAt(pc)
	check(err)
	_, _, err = i.CallSiteParameter(pc, 5)
	check(err)
	_, err = i.HasCallSite(pc)
	check(err)
	_, err = i.TailCalls(pc)
	check(err)
	calls, err := i.CallsAt(pc)
	check(err)
	for _, call := range calls {
		vars, err := i.VariablesAt(call, pc)
		check(err)
		for _, v := range vars {
			exerciseType(v.Type, 3)
		}
	}
}

func exerciseUnit(i *Info, u *unit, check func(error)) {
	table, err := u.table()
	check(err)
	if err != nil {
		return
	}
	for _, s := range append(table.statics, table.locals...) {
		v, _, err := u.globalAt(s.die)
		check(err)
		exerciseType(v.Type, 3)
	}
	names, err := u.types()
	check(err)
	for _, offsets := range names {
		for _, off := range offsets {
			exerciseType(i.typeOf(u, off, langCxx11), 3)
		}
	}
}

func exerciseType(t Type, depth int) {
	if t == nil || depth == 0 {
		return
	}
	t.Name()
	t.Kind()
	t.Size()
	t.Count()
	t.Reference()
	t.Enumerator(5)
	t.Variant(func(Member) (uint64, error) { return 1, nil })
	exerciseType(t.Elem(), depth-1)
	for _, m := range t.Members() {
		exerciseType(m.Type, depth-1)
	}
}

func FuzzLine(f *testing.F) {
	for _, flags := range [][]string{{"-gdwarf-5"}, {"-gdwarf-4"}, {"-gdwarf-2"}} {
		s := seedSections(f, "gcc", append(flags, "-O2")...)
		f.Add(s[secLine], s[secLineStr], uint64(0x1139))
	}
	f.Add([]byte{}, []byte{}, uint64(0))
	f.Fuzz(func(t *testing.T, line, strs []byte, pc uint64) {
		i := fake(map[sectionID][]byte{secLine: line, secLineStr: strs})
		u := &unit{src: i.main, version: 5}
		u.bind()
		h, err := u.readLineHeader(0)
		if err != nil {
			return
		}
		table := &lineTable{header: h, rows: h.readSubfiles}
		position, ok, err := table.positionAt(pc)
		if ok && (err != nil || position.Line == 0) {
			t.Errorf("a row with line %d, error %v", position.Line, err)
		}
	})
}

func FuzzLocationLists(f *testing.F) {
	five := seedSections(f, "gcc", "-O2")
	four := seedSections(f, "gcc", "-O2", "-gdwarf-4")
	f.Add(five[secLoclists], uint16(12), uint64(0x1139), uint8(0))
	f.Add(four[secLoc], uint16(0), uint64(0x20), uint8(1))
	f.Add([]byte{3, 0, 4, 1, 0, 0x50, 0}, uint16(0), uint64(0), uint8(2))
	f.Add([]byte{1, 0, 4, 0, 9, 1, 0x50, 5, 1, 0x51, 0}, uint16(0), uint64(4), uint8(0))
	f.Fuzz(func(t *testing.T, lists []byte, offset uint16, pc uint64, kind uint8) {
		i := fake(map[sectionID][]byte{secLoclists: lists, secLoc: lists, secRnglists: lists, secRanges: lists, secAddr: lists})
		u := &unit{src: i.main, version: 5, end: 64}
		u.bind()
		if kind%3 > 0 {
			u.version = 4
		}
		if kind%3 == 2 {
			u.skeleton = &unit{src: i.main, version: 4}
		}
		v := value{unit: u, form: formSecOffset, number: uint64(offset)}
		expr, err := locationAt(v, pc)
		if err != nil && expr != nil {
			t.Error("an expression and an error")
		}
		ranges, err := rangeList(v)
		for _, r := range ranges {
			if r[0] >= r[1] || err != nil {
				t.Errorf("range %#x, error %v", r, err)
			}
		}
	})
}

// TestEntriesEqualDebugDwarf compares the walk over DIEs with the standard
// library's.
func TestEntriesEqualDebugDwarf(t *testing.T) {
	for _, flags := range [][]string{{"-O2"}, {"-O2", "-gdwarf-4"}, {"-O0", "-gdwarf-3"}} {
		s := seedSections(t, "gcc", flags...)
		data, err := dwarf.New(s[secAbbrev], nil, nil, s[secInfo], s[secLine], nil, s[secRanges], s[secStr])
		if err != nil {
			t.Fatal(err)
		}
		for name, id := range map[string]sectionID{".debug_line_str": secLineStr, ".debug_rnglists": secRnglists} {
			if err := data.AddSection(name, s[id]); err != nil {
				t.Fatal(err)
			}
		}
		i := fake(s)
		units, err := i.main.units()
		if err != nil {
			t.Fatal(err)
		}
		r, count := data.Reader(), 0
		for _, u := range units {
			w, err := u.walk(u.first)
			if err != nil {
				t.Fatal(err)
			}
			var e entry
			for ; w.next(&e); count++ {
				want, err := r.Next()
				if err != nil || want == nil {
					t.Fatal(want, err)
				}
				sameEntry(t, &e, want)
			}
			if w.err != nil {
				t.Fatal(w.err)
			}
		}
		if count < 100 {
			t.Errorf("%d entries", count)
		}
	}
}

func sameEntry(t *testing.T, e *entry, want *dwarf.Entry) {
	t.Helper()
	if e.abbrev == nil != (want.Tag == 0) {
		t.Fatalf("entry at %#x, want %v", e.off, want)
	}
	if e.abbrev == nil {
		return
	}
	if e.off != uint64(want.Offset) || e.tag() != want.Tag || len(e.abbrev.fields) != len(want.Field) {
		t.Fatalf("%#x: %v, want %v", e.off, e.tag(), want)
	}
	for n, field := range want.Field {
		v := e.field(n)
		switch field.Class {
		case dwarf.ClassString:
			if got, err := v.str(); err != nil || got != field.Val {
				t.Errorf("%#x: %v is %q, %v, want %q", e.off, field.Attr, got, err, field.Val)
			}
		case dwarf.ClassReference:
			if _, off, err := v.ref(); err != nil || dwarf.Offset(off) != field.Val {
				t.Errorf("%#x: %v is %#x, %v, want %#x", e.off, field.Attr, off, err, field.Val)
			}
		case dwarf.ClassAddress:
			if got, err := v.addr(); err != nil || got != field.Val {
				t.Errorf("%#x: %v is %#x, %v, want %#x", e.off, field.Attr, got, err, field.Val)
			}
		}
	}
}
