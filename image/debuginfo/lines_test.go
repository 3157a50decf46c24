package debuginfo

import (
	"encoding/binary"
	"slices"
	"testing"
)

// lineProgram makes a table of hand-written opcodes; the file register begins
// at the second file.
func lineProgram(lowest uint64, parts ...[]byte) *lineTable {
	u := &unit{src: fake(nil).main, version: 5}
	u.root.low = value{unit: u, form: formAddr, number: lowest}
	h := &lineHeader{unit: u, program: slices.Concat(parts...), version: 5, minInst: 4, defaultStmt: true, lineBase: -5, lineRange: 14,
		opcodeBase: 18, opcodeLength: make([]byte, 17), files: []lineFile{{path: "/a.c"}, {path: "/b.c"}}}
	return &lineTable{header: h, rows: h.readSubfiles}
}

func setAddress(addr uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{lnsExtended, 9, lneSetAddress}, addr)
}

var endSequence = []byte{lnsExtended, 1, lneEndSequence}

func TestLineProgram(t *testing.T) {
	type at struct {
		pc     uint64
		file   string
		line   int
		column int
	}
	for name, c := range map[string]struct {
		lowest uint64
		parts  [][]byte
		want   []at
	}{
		"advances": {0x1000, [][]byte{setAddress(0x1000), {lnsAdvanceLine, 9, lnsCopy, lnsConstAddPC, lnsAdvanceLine, 1, lnsCopy,
			lnsFixedAdvance, 3, 0, lnsAdvanceLine, 1, lnsCopy, lnsAdvancePC, 2}, endSequence},
			// const_add_pc advances by (255-18)/14 = 16 instructions of 4 bytes.
			[]at{{0xfff, "", 0, 0}, {0x1000, "/b.c", 10, 0}, {0x103f, "/b.c", 10, 0}, {0x1040, "/b.c", 11, 0}, {0x1042, "/b.c", 11, 0},
				{0x1043, "/b.c", 12, 0}, {0x104a, "/b.c", 12, 0}, {0x104b, "", 0, 0}}},
		"one line twice with a discriminator": {0x1000, [][]byte{setAddress(0x1000), {lnsAdvanceLine, 9, lnsSetColumn, 5, lnsCopy,
			lnsAdvancePC, 1, lnsSetColumn, 7, lnsExtended, 2, lneDiscriminator, 1, lnsCopy, lnsAdvancePC, 1}, endSequence},
			[]at{{0x1000, "/b.c", 10, 5}, {0x1004, "/b.c", 10, 5}, {0x1008, "", 0, 0}}},
		"two files of one address": {0x1000, [][]byte{setAddress(0x1000), {lnsAdvanceLine, 9, lnsCopy, lnsAdvancePC, 4}, endSequence,
			setAddress(0x1000), {lnsSetFile, 0, lnsAdvanceLine, 19, lnsCopy, lnsAdvancePC, 4}, endSequence},
			[]at{{0x1000, "/b.c", 10, 0}}},
		"dropped by the linker": {0x1000, [][]byte{setAddress(0), {lnsAdvanceLine, 9, lnsCopy, lnsAdvancePC, 4}, endSequence,
			setAddress(0x1000), {lnsAdvanceLine, 19, lnsCopy, lnsAdvancePC, 4}, endSequence},
			[]at{{0, "", 0, 0}, {8, "", 0, 0}, {0x1000, "/b.c", 20, 0}}},
		"really at 0": {0, [][]byte{setAddress(0), {lnsAdvanceLine, 9, lnsCopy, lnsAdvancePC, 4}, endSequence},
			[]at{{0, "/b.c", 10, 0}}},
	} {
		table := lineProgram(c.lowest, c.parts...)
		for _, want := range c.want {
			got, ok, err := table.positionAt(want.pc)
			if err != nil || ok != (want.line != 0) || got.File != want.file || got.Line != want.line || got.Column != want.column {
				t.Errorf("%s: %#x is %+v, %v, %v; want %+v", name, want.pc, got, ok, err, want)
			}
		}
	}
}

// TestRangesLeaveOut ranges that the linker dropped and empty ranges.
func TestRangesLeaveOut(t *testing.T) {
	u := &unit{src: fake(nil).main, version: 5}
	addr := func(n uint64) value { return value{unit: u, form: formAddr, number: n} }
	for _, c := range []struct {
		low, high uint64
		want      int
	}{{0, 0x10, 0}, {0x10, 0x10, 0}, {0x10, 0x8, 0}, {0x10, 0x20, 1}} {
		if got := addRange(nil, c.low, c.high); len(got) != c.want {
			t.Errorf("list from %#x to %#x: %v", c.low, c.high, got)
		}
		if got, err := lowHigh(addr(c.low), addr(c.high)); len(got) != c.want || err != nil {
			t.Errorf("low_pc %#x, high_pc %#x: %v, %v", c.low, c.high, got, err)
		}
	}
}

// TestLocationEnds: an entry is valid up to its end, exclusive; the default is
// valid where no other is.
func TestLocationEnds(t *testing.T) {
	le := binary.LittleEndian
	five := append(le.AppendUint64([]byte{lleStartLength}, 0x1000), 0x10, 1, 0x50, lleDefault, 1, 0x51, 0)
	four := append(le.AppendUint64(le.AppendUint64(nil, 0x1000), 0x1010), 1, 0, 0x50)
	four = append(four, make([]byte, 16)...)
	info := fake(map[sectionID][]byte{secLoclists: five, secLoc: four})
	for version, fallback := range map[uint16]string{5: "\x51", 4: ""} {
		u := &unit{src: info.main, version: version}
		u.bind()
		v := value{unit: u, form: formSecOffset}
		for pc, want := range map[uint64]string{0xfff: fallback, 0x1000: "\x50", 0x100f: "\x50", 0x1010: fallback} {
			if got, err := locationAt(v, pc); err != nil || string(got) != want {
				t.Errorf("version %d, %#x: % x, %v; want % x", version, pc, got, err, want)
			}
		}
	}
}

// TestHiddenRows: of rows of one address, gdb takes the last statement; the last row may be of another file.
func TestHiddenRows(t *testing.T) {
	first := []byte{lnsSetFile, 0, lnsAdvanceLine, 9, lnsCopy} // a.c:10
	header := []byte{lnsSetFile, 1, lnsAdvanceLine, 4, lnsCopy}
	back := []byte{lnsSetFile, 0, lnsAdvanceLine, 0x7c, lnsNegateStmt, lnsCopy, lnsNegateStmt} // 4 lines back
	next := []byte{lnsAdvancePC, 4, lnsAdvanceLine, 1, lnsCopy, lnsAdvancePC, 1}
	for name, c := range map[string]struct {
		parts [][]byte
		want  int
	}{
		"the last row":              {[][]byte{setAddress(0x1000), first, header, back, next, endSequence}, 10},
		"another row came after it": {[][]byte{setAddress(0x1000), first, header, back, header, next, endSequence}, 0},
		"kept by gdb as well":       {[][]byte{setAddress(0x1000), first, next, endSequence}, 0},
	} {
		table := lineProgram(0x1000, c.parts...)
		for _, pc := range []uint64{0x1000, 0x100f} {
			got, ok, err := table.positionIn(pc, "/a.c")
			if err != nil || ok != (c.want != 0) || got.Line != c.want {
				t.Errorf("%s: %#x is %+v, %v, %v; want line %d", name, pc, got, ok, err, c.want)
			}
		}
		if got, ok, err := table.positionIn(0x1010, "/a.c"); ok || err != nil {
			t.Errorf("%s: the next address is %+v, %v", name, got, err)
		}
	}
}
