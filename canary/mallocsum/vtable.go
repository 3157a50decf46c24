package mallocsum

import (
	"strings"

	"diagnose/evidence"
	"diagnose/image"
)

// Bounds of the classes that are looked up.
const (
	mostTables  = 1 << 16
	mostClasses = 512 // whose members are looked up in debug information
)

// class is what a table of virtual functions tells.
type class struct {
	kinds  map[evidence.MallocShape]int32
	name   string
	layout *layout // nil: its members are not known
}

// typeClasses gives types to the objects that begin with the address of a table of virtual functions.
func (y *typing) typeClasses() {
	tables := map[uint64]*class{}
	looked := 0
	for i := range y.table.objects {
		o := &y.table.objects[i]
		first, err := image.Uint64(y.memory, o.start)
		if err != nil || first < pageSize {
			continue
		}
		c, known := tables[first]
		if !known {
			if m := y.process.ModuleAt(evidence.Addr(first)); m == nil || len(tables) >= mostTables {
				continue
			}
			c = y.classOf(evidence.Addr(first), &looked)
			tables[first] = c
		}
		if c != nil {
			y.setClass(i, c, first)
		}
	}
	y.follow()
}

// setClass gives an object a class.
func (y *typing) setClass(i int, c *class, table uint64) {
	o := &y.table.objects[i]
	shape := evidence.MallocShape("")
	if l := c.layout; l != nil {
		switch {
		case l.size > o.size:
			return // no object of the class can be there
		case o.fits(l.size):
			shape = evidence.ShapeOne
		default:
			shape = evidence.ShapeStart
			next, err := image.Uint64(y.memory, o.start+evidence.Addr(l.size))
			if o.size >= 2*l.size && err == nil && next == table && o.fits(o.size/l.size*l.size) {
				shape = evidence.ShapeArray
			}
		}
	}
	number, known := c.kinds[shape]
	if !known {
		number = y.number(evidence.MallocKind{Name: c.name, Shape: shape, Basis: evidence.BasisVtable, Proof: evidence.Inferred})
		c.kinds[shape] = number
	}
	o.rank, o.kind = rankVtable, number
	if c.layout != nil {
		y.enqueue(typedObject{i, c.layout, 0, shape})
	}
}

// classOf is the class whose objects begin with this address; nil: none does. Of the tables in a class's group only the first is for
// the start of a complete object: the offset to the top is 0 there (Itanium C++ ABI 2.5.2).
func (y *typing) classOf(table evidence.Addr, looked *int) *class {
	const word = 8
	top, err := image.Uint64(y.memory, table-2*word)
	if err != nil || top != 0 || table%word != 0 {
		return nil
	}
	s, ok := y.process.SymbolAt(table)
	if !ok || s.Module.Object == nil {
		return nil
	}
	raw, ok := s.Module.Object.SymbolAt(s.Module.LinkAddr(table))
	if !ok || !strings.HasPrefix(raw.Name, "_ZTV") || table < s.Addr+2*word {
		return nil
	}
	c := &class{name: strings.TrimPrefix(s.Name, "vtable for "), kinds: map[evidence.MallocShape]int32{}}
	if *looked++; *looked > mostClasses {
		return c
	}
	if info, err := s.Module.Debug(); err == nil && info != nil {
		if t, ok, err := info.TypeNamed(c.name, 0); ok && err == nil {
			c.layout = y.layouts.of(t)
		}
	}
	return c
}

// typeTexts marks the objects without a type that have text.
func (y *typing) typeTexts() {
	text := y.number(evidence.MallocKind{Name: "text", Basis: evidence.BasisText, Proof: evidence.Inferred})
	const least, most = 4, 4096
	var buffer [most]byte
	for i := range y.table.objects {
		o := &y.table.objects[i]
		if o.rank != rankNone {
			continue
		}
		n, _ := y.memory.ReadMemory(o.start, buffer[:min(o.size, most)])
		if length := textLength(buffer[:n]); length >= least {
			o.rank, o.kind = rankText, text
		}
	}
}

// textLength is the length of the printable text that data begins with, up to a null byte; 0: there is none.
func textLength(data []byte) int {
	for i, b := range data {
		switch {
		case b == 0:
			return i
		case b < ' ' && b != '\n' && b != '\t' && b != '\r', b >= 0x7f:
			return 0
		}
	}
	return 0
}
