package canary

import (
	"cmp"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/wording"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
)

// damage is an overwritten guard.
type damage struct {
	frame    *Frame
	smashed  bool
	addr     evidence.Addr
	expected uint64
	found    []byte
	thread   evidence.ThreadRef
}

// maxBuffers bounds the buffers that a finding lists.
const maxBuffers = 8

func (d *damage) finding(m image.Memory) evidence.Finding {
	f := d.frame
	name := f.Function
	if name == "" {
		name = f.Registers.PC().String()
	}
	facts := []evidence.Fact{
		{Name: "function", Text: name},
		{Name: "guard", Text: d.addr.String()},
		{Name: "expected", Text: hexWord(binary.LittleEndian.AppendUint64(nil, d.expected))},
		{Name: "found", Text: hexWord(d.found)},
	}
	summary := fmt.Sprintf("the stack guard of %s was overwritten", name)
	if !d.smashed {
		summary += ", and the function has not returned yet"
	}
	if below := d.below(); len(below) > 0 {
		b := below[0]
		summary += fmt.Sprintf(": it lies %s %s (%s), the nearest buffer below it (inferred)",
			behind(uint64(d.addr-b.end())), b.Name, b.Type)
		facts = append(facts, d.span(m, b)...)
	}
	facts = append(facts, d.distances()...)
	return evidence.Finding{Kind: evidence.FindingStackGuard, Summary: summary, Facts: facts, Addr: d.addr, Size: 8,
		Threads: d.threads(), Site: f.Site, Proof: evidence.FromCore}
}

// referenceFinding is for an intact guard that differs from an overwritten
// reference value.
func (d *damage) referenceFinding(reference evidence.Addr) evidence.Finding {
	return evidence.Finding{
		Kind: evidence.FindingStackGuard,
		Summary: fmt.Sprintf("the thread's reference value of its stack guards was overwritten; the guard of %s is whole",
			d.frame.Function),
		Facts: []evidence.Fact{
			{Name: "function", Text: d.frame.Function},
			{Name: "guard", Text: d.addr.String()},
			{Name: "reference", Text: reference.String() + " (fs:0x28)"},
			{Name: "expected", Text: hexWord(d.found)},
			{Name: "found", Text: hexWord(binary.LittleEndian.AppendUint64(nil, d.expected))},
		},
		Addr: reference, Size: 8, Threads: d.threads(), Site: d.frame.Site, Proof: evidence.FromCore,
	}
}

func (d *damage) threads() []evidence.ThreadRef {
	if d.thread.TID == 0 {
		return nil
	}
	return []evidence.ThreadRef{d.thread}
}

func behind(n uint64) string {
	switch n {
	case 0:
		return "directly past the end of"
	case 1:
		return "1 byte past the end of"
	}
	return fmt.Sprintf("%d bytes past the end of", n)
}

// span shows the bytes from the end of the nearest buffer to the guard and
// after it. They often show what the overflow copied.
func (d *damage) span(m image.Memory, b Buffer) []evidence.Fact {
	const longest = 64
	if d.addr-b.end() > longest {
		return nil
	}
	data := make([]byte, int(d.addr-b.end())+8)
	if _, err := m.ReadMemory(b.end(), data); err != nil {
		return nil
	}
	return []evidence.Fact{{Name: "from the end of " + b.Name, Text: quotedBytes(data)}}
}

// below returns the buffers of the frame that end below the guard, the nearest
// first.
func (d *damage) below() []Buffer {
	list := slices.DeleteFunc(slices.Clone(d.frame.Buffers), func(b Buffer) bool {
		return b.Size == 0 || b.end() < b.Addr || b.end() > d.addr || b.Addr < d.frame.Registers.SP()
	})
	slices.SortStableFunc(list, func(a, b Buffer) int { return cmp.Compare(b.end(), a.end()) })
	return list
}

// distances lists how far below the guard each buffer ends, the nearest first.
func (d *damage) distances() []evidence.Fact {
	below := d.below()
	var facts []evidence.Fact
	for i, b := range below {
		if i == maxBuffers {
			facts = append(facts, evidence.Fact{Name: "further buffers", Text: fmt.Sprint(len(below) - i)})
			break
		}
		text := fmt.Sprintf("%s, %d bytes at %v; the guard lies %s it", b.Type, b.Size, b.Addr, behind(uint64(d.addr-b.end())))
		facts = append(facts, evidence.Fact{Name: "buffer " + b.Name, Text: text})
	}
	return facts
}

// hexWord shows bytes in memory order, and as a number and text.
func hexWord(data []byte) string {
	return fmt.Sprintf("%#016x (bytes %s %s)", binary.LittleEndian.Uint64(data), hex.EncodeToString(data), quotedBytes(data))
}

// quotedBytes shows bytes as quoted text.
func quotedBytes(data []byte) string { return `"` + wording.Printable(data) + `"` }
