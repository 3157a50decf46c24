package reports

import (
	"fmt"
	"math/bits"
	"sort"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// htmlMemory is a picture of the memory around an object: a bar of stretches,
// and below it the bytes around the damage.
type htmlMemory struct {
	Title    string
	Width    int
	Segments []htmlSegment
	Rows     []htmlByteRow
	// End says that the end of an object is among the bytes.
	End bool
}

// htmlSegment is a stretch of the bar. Its width is not to scale: an object of a megabyte and a
// guard of eight bytes must both be visible.
type htmlSegment struct {
	X, Width, Mid    int
	Class            string
	Label, Size      string
	Start            string
	Title            string
	Damaged, Written bool
}

// htmlByteRow is a row of the dump. A row of expected bytes has no address.
type htmlByteRow struct {
	Address string
	Cells   []htmlByte
	Text    string
}

type htmlByte struct {
	Hex, Class, Title string
}

const (
	barWidth    = 900
	segmentWide = 70
)

// stretch is a part of memory with one meaning.
type stretch struct {
	start, end evidence.Addr
	class      string
	label      string
}

func findingMemory(f *evidence.Finding) *htmlMemory {
	o := f.Object
	if o == nil {
		return nil
	}
	m := &htmlMemory{Title: "Memory around the object"}
	var damaged [][2]evidence.Addr
	if d := f.Damage; d != nil {
		damaged = append(damaged, [2]evidence.Addr{d.Start, d.End})
		m.Rows = byteRows(f)
	}
	m.Segments = segments(memoryOf(o, f.Beyond, damaged), damaged, "overwritten")
	if len(m.Segments) == 0 {
		return nil
	}
	m.Width = barWidth
	return m
}

// causeMemory shows the object of a memory error and where the stores of its
// story went; nil if the cause has none.
func causeMemory(c *evidence.Cause) *htmlMemory {
	if c.Object == nil {
		return nil
	}
	var stores [][2]evidence.Addr
	for i := range c.Story {
		a := c.Story[i].Access
		if a == nil || a.Kind == evidence.Read || a.Call != "" || a.Size <= 0 {
			continue
		}
		stores = append(stores, [2]evidence.Addr{a.Address, a.Address + evidence.Addr(a.Size)})
	}
	m := &htmlMemory{Title: "Memory around the object, and where the store went", Width: barWidth}
	m.Segments = segments(memoryOf(c.Object, nil, stores), stores, "stored to")
	if len(stores) == 0 || len(m.Segments) == 0 {
		return nil
	}
	return m
}

// memoryOf returns the stretches around an object, in order, as far as the marked memory reaches.
func memoryOf(o, beyond *evidence.HeapObject, marked [][2]evidence.Addr) []stretch {
	end := o.Addr + evidence.Addr(o.Size)
	if end < o.Addr {
		return nil // wraps around: no memory exists there
	}
	class, label := "object", "object"
	if o.State == evidence.HeapQuarantined || o.State == evidence.HeapFreed {
		class, label = "freed", "freed object"
	}
	list := []stretch{{o.Addr, end, class, label}}
	if o.Slot < o.Addr {
		list = append(list, stretch{o.Slot, o.Addr, "guard", "guard before it"})
	}
	if o.SlotEnd > end {
		list = append(list, stretch{end, o.SlotEnd, "guard", "guard"})
	}
	if beyond != nil && beyond.Addr >= end && beyond.Addr+evidence.Addr(beyond.Size) > beyond.Addr {
		state := "next object"
		if beyond.State != evidence.HeapLive {
			state = "next object, freed"
		}
		list = append(list, stretch{beyond.Addr, beyond.Addr + evidence.Addr(beyond.Size), "beyond", state})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].start < list[j].start })
	return fillGaps(list, marked)
}

// fillGaps adds the gaps between the stretches, and the marked memory before and after them.
func fillGaps(list []stretch, marked [][2]evidence.Addr) []stretch {
	var out []stretch
	const near = 1 << 16 // memory further away is no neighbour
	for _, m := range marked {
		if first := list[0].start; m[0] < first && first-m[0] < near {
			list = append([]stretch{{m[0], first, "between", "before it"}}, list...)
		}
	}
	for i, s := range list {
		if i > 0 && s.start > list[i-1].end && s.start-list[i-1].end < near {
			out = append(out, stretch{list[i-1].end, s.start, "between", "between"})
		}
		out = append(out, s)
	}
	for _, m := range marked {
		if last := out[len(out)-1].end; m[1] > last && m[1]-last < near {
			out = append(out, stretch{last, m[1], "between", "after it"})
		}
	}
	return out
}

// segments cuts the stretches where marked memory begins and ends, and gives
// each part its place in the bar.
func segments(list []stretch, marked [][2]evidence.Addr, what string) []htmlSegment {
	type part struct {
		stretch
		marked bool
	}
	var parts []part
	for _, s := range list {
		cuts := []evidence.Addr{s.start, s.end}
		for _, m := range marked {
			for _, a := range m {
				if a > s.start && a < s.end {
					cuts = append(cuts, a)
				}
			}
		}
		sort.Slice(cuts, func(i, j int) bool { return cuts[i] < cuts[j] })
		for i := 0; i+1 < len(cuts); i++ {
			if cuts[i] == cuts[i+1] {
				continue
			}
			p := part{stretch: s}
			p.start, p.end = cuts[i], cuts[i+1]
			for _, m := range marked {
				p.marked = p.marked || p.start >= m[0] && p.end <= m[1]
			}
			parts = append(parts, p)
		}
	}
	const mostParts = 12
	if len(parts) > mostParts {
		return nil // a picture of so many shows nothing
	}
	weight, total := make([]int, len(parts)), 0
	for i, p := range parts {
		weight[i] = 2 + bits.Len64(uint64(p.end-p.start))
		total += weight[i]
	}
	var out []htmlSegment
	x, free := 0, barWidth-segmentWide*len(parts)
	for i, p := range parts {
		width := segmentWide + free*weight[i]/total
		size := wording.Count(uint64(p.end-p.start), "byte")
		s := htmlSegment{X: x, Width: width, Mid: x + width/2, Class: p.class, Label: p.label, Size: size, Start: p.start.String(), Damaged: p.marked}
		s.Title = fmt.Sprintf("%s, %s from %v", p.label, size, p.start)
		if p.marked {
			s.Title += ", " + what
			s.Label = what
		}
		out = append(out, s)
		x += width
	}
	return out
}

// byteRows is the dump of the other formats as a table.
func byteRows(f *evidence.Finding) []htmlByteRow {
	cells, start, end := dumpCells(f)
	inside := "inside"
	if o := f.Object; o != nil && o.State != evidence.HeapLive {
		inside = "inside gone"
	}
	var rows []htmlByteRow
	for at := 0; at < len(cells); at += bytesPerRow {
		row := htmlByteRow{Address: (start + evidence.Addr(at)).String()}
		want := htmlByteRow{}
		damaged := false
		for i, c := range cells[at:min(at+bytesPerRow, len(cells))] {
			b, w := htmlByte{Hex: c.hex}, htmlByte{}
			text := string(rune(c.text))
			switch {
			case c.hex == "":
				text = " "
			case c.damaged:
				b.Class, w.Hex, damaged = "damaged", c.want, true
				b.Title = "overwritten; " + c.want + " was expected"
			case end >= 0 && at+i < end:
				b.Class = inside
			}
			if c.hex != "" && at+i == end {
				b.Class += " end"
			}
			row.Cells, want.Cells = append(row.Cells, b), append(want.Cells, w)
			row.Text += text
		}
		rows = append(rows, row)
		if damaged {
			rows = append(rows, want)
		}
	}
	return rows
}
