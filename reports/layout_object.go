package reports

import (
	"encoding/hex"
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// objectFacts are the lines on the heap object of a finding and its damage, and on the array that was overrun.
func objectFacts(f *evidence.Finding) facts {
	var list facts
	if o := f.Object; o != nil {
		list = append(list, fact{"object", say(plain, objectText(o))})
	}
	if f.Damage != nil {
		list = append(list, fact{"damage", say(plain, damageText(f))})
	}
	if o := f.Beyond; o != nil {
		list = append(list, fact{"beyond", say(plain, objectText(o)+allocatedIn(o))})
	}
	list = append(list, mallocFacts(f.Heap)...)
	list = append(list, containerFacts(f.Container)...)
	return append(list, overrunFacts(f.Overrun)...)
}

func objectText(o *evidence.HeapObject) string {
	state := string(o.State)
	switch o.State {
	case evidence.HeapQuarantined:
		state = "freed, in quarantine"
	case evidence.HeapFreed:
		state = "freed, its memory may be used again"
	}
	text := fmt.Sprintf("%s at %v, %s, from %s", wording.Count(o.Size, "byte"), o.Addr, state, o.API)
	if o.SlotEnd > o.Slot {
		text += fmt.Sprintf("; its slot is %v to %v", o.Slot, o.SlotEnd)
	}
	return text
}

func allocatedIn(o *evidence.HeapObject) string {
	if o.Allocated == nil || o.Allocated.Site == nil {
		return ""
	}
	s := *o.Allocated.Site
	text := ", allocated in " + placeName(s)
	if s.File != "" {
		text += " at " + position(s)
	}
	return text
}

func damageText(f *evidence.Finding) string {
	d := f.Damage
	text := fmt.Sprintf("%v to %v", d.Start, d.End)
	if d.Offset < 0 {
		text += fmt.Sprintf(", from %s before the object on", wording.Count(uint64(-d.Offset), "byte"))
	} else {
		text += fmt.Sprintf(", from offset %d on", d.Offset)
	}
	if length := uint64(d.End - d.Start); uint64(d.Overwritten) < length {
		text += fmt.Sprintf("; %d of these %s differ", d.Overwritten, wording.Count(length, "byte"))
	}
	if d.Reaches {
		text += "; it reaches the end of the guard, so more may have been overwritten"
	}
	return text
}

// bytesPerRow is the length of a row of every hex dump.
const bytesPerRow = 16

// cell is one byte of a dump.
type cell struct {
	hex     string // two characters; "" for a byte that is not shown
	text    byte
	want    string // the expected byte; "" if any may be there
	damaged bool
}

// dump shows the memory around the start of the damage. Brackets enclose the overwritten bytes, a
// bar marks the object's end, and the expected bytes are below.
func dump(f *evidence.Finding) []block {
	cells, start, end := dumpCells(f)
	if cells == nil {
		return nil
	}
	var lines verbatim
	for at := 0; at < len(cells); at += bytesPerRow {
		row := cells[at:min(at+bytesPerRow, len(cells))]
		lines = append(lines, dumpRow(start+evidence.Addr(at), row, end-at))
		if l, ok := expectedRow(row); ok {
			lines = append(lines, l)
		}
	}
	return []block{lines}
}

// dumpCells returns the bytes of a dump, the address of the first one, and the index of the first
// cell past the object's end, -1 if that end is not among them.
func dumpCells(f *evidence.Finding) (cells []cell, start evidence.Addr, end int) {
	d := f.Damage
	if d == nil || len(d.Bytes)%2 != 0 || len(d.Before)%2 != 0 || d.Bytes == "" {
		return nil, 0, -1
	}
	start = d.Start - evidence.Addr(len(d.Before)/2)
	cells = append(cellsOf(d.Before, "", ""), cellsOf(d.Bytes, d.Expected, d.Text)...)
	lead := int(start % bytesPerRow)
	cells = append(make([]cell, lead), cells...)
	start -= evidence.Addr(lead)
	end = -1
	if o := f.Object; o != nil && o.Addr+evidence.Addr(o.Size) > start {
		end = int(min(uint64(o.Addr+evidence.Addr(o.Size)-start), uint64(len(cells))))
	}
	return cells, start, end
}

func cellsOf(bytes, expected, text string) []cell {
	list := make([]cell, len(bytes)/2)
	for i := range list {
		c := &list[i]
		c.hex, c.text = bytes[2*i:2*i+2], textOf(bytes[2*i:2*i+2])
		if i < len(text) && len(text) == len(list) {
			c.text = text[i]
		}
		if 2*i+2 <= len(expected) {
			c.want = expected[2*i : 2*i+2]
			c.damaged = c.want != c.hex
		}
	}
	return list
}

// textOf is the character of a byte in hexadecimal.
func textOf(digits string) byte {
	b, err := hex.DecodeString(digits)
	switch {
	case err != nil:
		return hiddenCharacter
	case b[0] < ' ' || b[0] > '~':
		return '.'
	}
	return b[0]
}

func dumpRow(addr evidence.Addr, row []cell, end int) line {
	l := say(faint, fmt.Sprintf("    %#016x ", uint64(addr)))
	var text strings.Builder
	for i, c := range row {
		l = l.and(plain, separator(row, i, end))
		if c.hex == "" {
			l = l.and(plain, "  ")
			text.WriteByte(' ')
			continue
		}
		st := plain
		if c.damaged {
			st = alarm
		}
		l = l.and(st, c.hex)
		text.WriteByte(c.text)
	}
	l = l.and(plain, separator(row, len(row), end))
	if rest := bytesPerRow - len(row); rest > 0 {
		l = l.and(plain, strings.Repeat("   ", rest))
	}
	return l.and(faint, "  "+text.String())
}

// separator returns the character before byte i of a row, or after the last byte.
func separator(row []cell, i, end int) string {
	before, after := i > 0 && row[i-1].damaged, i < len(row) && row[i].damaged
	switch {
	case after && !before:
		return "["
	case before && !after:
		return "]"
	case i == end && i < len(row):
		return "|"
	}
	return " "
}

func expectedRow(row []cell) (line, bool) {
	var b strings.Builder
	damaged := false
	for _, c := range row {
		text := "  "
		if c.damaged {
			text, damaged = c.want, true
		}
		b.WriteString(" " + text)
	}
	return say(faint, "    expected           "+strings.TrimRight(b.String(), " ")), damaged
}

// callTitles describe the call in which the agent found something.
var callTitles = map[evidence.FindingKind]string{
	evidence.FindingDoubleFree:     "released again",
	evidence.FindingInvalidFree:    "passed",
	evidence.FindingMismatchedFree: "released",
}

// calls are the stacks of a finding: this call's, the allocation's, the free's.
func calls(f *evidence.Finding) []block {
	var d []block
	add := func(what string, c *evidence.HeapCall) {
		if c != nil {
			d = append(d, callLines(what, c))
		}
	}
	switch what := callTitles[f.Kind]; {
	case what != "":
		add(what, f.Call)
	case f.Call != nil && len(f.Call.Stack.Frames) == 0: // a check at exit belongs to no call
		if f.Call.Thread != nil {
			d = append(d, verbatim{say(strong, "found").and(plain, " by ").and(strong, f.Call.Thread.Label())})
		}
	default:
		add("found in a call", f.Call)
	}
	if f.Object != nil {
		add("freed", f.Object.Freed)
		add("allocated", f.Object.Allocated)
	}
	if f.Beyond != nil {
		add("the object beyond was freed", f.Beyond.Freed)
		add("the object beyond was allocated", f.Beyond.Allocated)
	}
	return d
}

func callLines(what string, c *evidence.HeapCall) verbatim {
	l := say(strong, what)
	if c.Thread != nil {
		l = l.and(plain, " by ").and(strong, c.Thread.Label())
	}
	if len(c.Stack.Frames) == 0 {
		return verbatim{l.and(caveat, "; its stack is not known")}
	}
	return append(verbatim{l.and(plain, " at")}, stackLines(c.Stack)...)
}
