package reports

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// mallocTotals are the facts of malloc's heap in numbers.
func mallocTotals(h *evidence.Heap) facts {
	m := h.Malloc
	var free, freeBytes, largest, top uint64
	for i := range m.Arenas {
		a := &m.Arenas[i]
		free += a.Free
		freeBytes += a.FreeBytes
		top += a.TopBytes
		largest = max(largest, a.LargestFree)
	}
	between := fmt.Sprintf("%s in %s between objects", wording.Count(freeBytes, "byte"), wording.Count(free, "piece"))
	if free > 0 {
		between += fmt.Sprintf(", the largest of %s", wording.Size(largest))
	}
	version := m.Library
	if m.Version != "" {
		version = "glibc " + m.Version + ", " + version
	}
	list := facts{
		{"free", say(plain, fmt.Sprintf("%s; %s at the ends of arenas", between, wording.Count(top, "byte")))},
		{"mapped", say(plain, fmt.Sprintf("%s for objects, in %s", wording.Size(h.MappedBytes), wording.Count(len(m.Arenas), "arena")))},
	}
	if m.Mapped > 0 {
		list = append(list, fact{"own mappings", say(plain, fmt.Sprintf("%s of these, with %s", wording.Count(m.Mapped, "object"), wording.Size(m.MappedBytes))).and(faint, provenBy(evidence.Inferred))})
	}
	if l := m.Leaks; l != nil {
		list = append(list, fact{"unreachable", leakTotals(l)})
	}
	return append(list, fact{"malloc", say(plain, version)})
}

// leakTotals sums up the unreachable objects.
func leakTotals(l *evidence.MallocLeaks) line {
	if l.Direct == 0 {
		return say(plain, "no object").and(faint, provenBy(l.Proof))
	}
	text := fmt.Sprintf("%s with %s", wording.Count(l.Direct, "object"), wording.Count(l.DirectBytes, "byte"))
	if l.Indirect > 0 {
		text += fmt.Sprintf(", which lead to %s with %s", wording.Count(l.Indirect, "other"), wording.Count(l.IndirectBytes, "byte"))
	}
	return say(alarm, text).and(faint, provenBy(l.Proof))
}

func provenBy(p evidence.Proof) string { return fmt.Sprintf(" [%s]", p) }

// mallocSections are the tables of malloc's heap.
func mallocSections(h *evidence.Heap) []block {
	m := h.Malloc
	var d []block
	if m.Leaks != nil {
		d = append(d, leakBlocks(m.Leaks)...)
	}
	d = append(d, typeBlocks(m)...)
	d = append(d, largestBlocks(m)...)
	d = append(d, sizeBlocks(m)...)
	return append(d, arenaBlocks(m)...)
}

func leakBlocks(l *evidence.MallocLeaks) []block {
	var d []block
	if len(l.Groups) > 0 {
		d = append(d, heading{text: "Unreachable objects" + provenBy(l.Proof)})
		if l.Missing > 0 {
			d = append(d, verbatim{say(caveat, fmt.Sprintf("%s of writable memory could not be searched for pointers to them", wording.Size(l.Missing)))})
		}
		g := grid{header: []string{"#", "size", "objects", "they lead to", "bytes", "type", "first at"}}
		for i := range l.Groups {
			x := &l.Groups[i]
			g.rows = append(g.rows, []string{fmt.Sprint(i + 1), wording.Size(x.Size), fmt.Sprint(x.Objects), fmt.Sprint(x.Indirect), wording.Size(x.IndirectBytes),
				kindCell(&x.Type), x.First.String()})
		}
		d = append(d, g)
		d = append(d, elided(l.Elided, "group")...)
	}
	if l.Interior > 0 {
		d = append(d, verbatim{say(faint, fmt.Sprintf("%s with %s can be reached only over pointers to the middle of an object; they do not count as unreachable",
			wording.Count(l.Interior, "object"), wording.Size(l.InteriorBytes)))})
	}
	return d
}

// elided says how many rows of a table were left out.
func elided(n int, noun string) []block {
	if n == 0 {
		return nil
	}
	return []block{verbatim{say(faint, fmt.Sprintf("and %s with less; --sites N shows more", wording.Count(n, noun)))}}
}

// kindCell is a type with what follows from the object's size.
func kindCell(k *evidence.MallocKind) string {
	const longest = 80
	if k.Name == "" {
		return "unknown"
	}
	text := brief(Clean(k.Name), longest)
	switch k.Shape {
	case evidence.ShapeArray:
		return text + "[]"
	case evidence.ShapeStart:
		return text + " and more"
	}
	return text
}

func typeBlocks(m *evidence.MallocHeap) []block {
	if len(m.Types) == 0 {
		return nil
	}
	g := grid{header: []string{"#", "live", "objects", "largest", "type", "by"}}
	for i := range m.Types {
		t := &m.Types[i]
		by := ""
		if t.Proof != "" {
			by = fmt.Sprintf("%s%s", basisWords[t.Basis], provenBy(t.Proof))
		}
		g.rows = append(g.rows, []string{fmt.Sprint(i + 1), wording.Size(t.Bytes), fmt.Sprint(t.Objects), wording.Size(t.Largest), kindCell(&t.MallocKind), by})
	}
	return append([]block{heading{text: "By type"}, g}, elided(m.TypesElided, "type")...)
}

// basisWords say what types follow from.
var basisWords = map[evidence.MallocBasis]string{
	evidence.BasisVtable:  "its virtual functions",
	evidence.BasisPointer: "a typed pointer to it",
	evidence.BasisText:    "its bytes",
}

func largestBlocks(m *evidence.MallocHeap) []block {
	if len(m.Largest) == 0 {
		return nil
	}
	g := grid{header: []string{"#", "size", "at", "type", "held by"}}
	for i := range m.Largest {
		o := &m.Largest[i]
		g.rows = append(g.rows, []string{fmt.Sprint(i + 1), wording.Size(o.Size), o.Addr.String(), kindCell(&o.Type), holderCell(o)})
	}
	return []block{heading{text: "Largest objects, types" + provenBy(evidence.Inferred)}, g}
}

// holderCell says what points to an object.
func holderCell(o *evidence.MallocObject) string {
	const longest = 100
	h := o.Holder
	if h == nil {
		return "nothing that was found"
	}
	var text string
	switch {
	case h.Kind == evidence.HolderRegister:
		text = "a register"
	case h.Kind == evidence.HolderStack:
		text = "a stack, at " + h.Address.String()
	case h.Kind == evidence.HolderMemory:
		text = "memory at " + h.Address.String()
	case h.Kind == evidence.HolderObject && o.HolderKind != nil && o.HolderKind.Name != "":
		text = fmt.Sprintf("offset %d of %s at %v", h.ObjectOffset, kindCell(o.HolderKind), h.Object)
	default:
		text = holderText(h)
	}
	return brief(Clean(text), longest)
}

func sizeBlocks(m *evidence.MallocHeap) []block {
	if len(m.Sizes) == 0 {
		return nil
	}
	g := grid{header: []string{"#", "live", "objects", "size"}}
	for i, s := range m.Sizes {
		g.rows = append(g.rows, []string{fmt.Sprint(i + 1), wording.Size(s.Bytes), fmt.Sprint(s.Objects), wording.Count(s.Size, "byte")})
	}
	return append([]block{heading{text: "By size"}, g}, elided(m.SizesElided, "size")...)
}

func arenaBlocks(m *evidence.MallocHeap) []block {
	g := grid{header: []string{"arena", "memory", "live", "objects", "free between", "pieces", "largest", "free at the end"}}
	for i := range m.Arenas {
		a := &m.Arenas[i]
		name := a.Addr.String()
		if a.Main {
			name = "main"
		}
		g.rows = append(g.rows, []string{name, wording.Size(a.SystemBytes), wording.Size(a.LiveBytes), fmt.Sprint(a.LiveObjects), wording.Size(a.FreeBytes),
			fmt.Sprint(a.Free), wording.Size(a.LargestFree), wording.Size(a.TopBytes)})
	}
	return []block{heading{text: "Arenas"}, g}
}
