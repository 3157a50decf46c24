package pyframes

// The codes of entries of a table of lines (InternalDocs/code_objects.md; Objects/locations.md before 3.13).
const (
	oneLine  = 10 // to 12: the lines since the one before; two columns follow
	noColumn = 13
	long     = 14
	noPlace  = 15
)

// lineAt returns the line of a code unit by the co_linetable of its code, whose first line is first; 0: it has none, or the table is damaged.
func lineAt(table []byte, first int, unit uint64) int {
	line := int64(first)
	t := &lineTable{data: table}
	for at := uint64(0); len(t.data) > 0; {
		b := t.byte()
		if b&0x80 == 0 {
			return 0
		}
		kind, units := b>>3&15, uint64(b&7)+1
		switch {
		case kind < oneLine:
			t.byte()
		case kind < noColumn:
			line += int64(kind - oneLine)
			t.byte()
			t.byte()
		case kind == noColumn:
			line += t.signed()
		case kind == long:
			line += t.signed()
			t.number()
			t.number()
			t.number()
		}
		if t.bad || line < -1<<31 || line >= 1<<31 {
			return 0
		}
		if unit < at+units {
			if kind == noPlace || line < 0 {
				return 0
			}
			return int(line)
		}
		at += units
	}
	return 0
}

// lineTable reads numbers.
type lineTable struct {
	data []byte
	bad  bool
}

func (t *lineTable) byte() byte {
	if len(t.data) == 0 {
		t.bad = true
		return 0
	}
	b := t.data[0]
	t.data = t.data[1:]
	return b
}

// number is made of six bits a byte, the lowest first; bit 6 says that more follow.
func (t *lineTable) number() uint64 {
	const bits, more, longest = 6, 0x40, 36
	v := uint64(0)
	for shift := 0; shift <= longest; shift += bits {
		b := t.byte()
		v |= uint64(b&(more-1)) << shift
		if b&more == 0 {
			return v
		}
	}
	t.bad = true
	return 0
}

// signed has its sign in the lowest bit.
func (t *lineTable) signed() int64 {
	v := t.number()
	if v&1 != 0 {
		return -int64(v >> 1)
	}
	return int64(v >> 1)
}
