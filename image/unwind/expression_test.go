package unwind

import (
	"encoding/binary"
	"fmt"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
)

// ramp is a memory whose words hold their own address plus one.
type ramp struct{}

func (ramp) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	if addr < 0x1000 {
		return 0, &image.MemoryError{Addr: addr, Reason: "is not mapped", Unmapped: true}
	}
	for i := range p {
		var word [8]byte
		at := uint64(addr) + uint64(i)
		binary.LittleEndian.PutUint64(word[:], at&^7+1)
		p[i] = word[at&7]
	}
	return len(p), nil
}

func TestExpression(t *testing.T) {
	var regs image.Registers
	regs.Set(image.RSP, 0x7000)
	regs.Set(image.RIP, 0x401008)
	// The expression of the procedure linkage table that ld emits: rsp + 8 +
	// ((rip & 15) >= 11) << 3.
	plt := []byte{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}
	for name, test := range map[string]struct {
		e    expression
		want uint64
		ok   bool
	}{
		"register and offset": {expression{code: []byte{0x77, 0x10}}, 0x7010, true},
		"dereferenced":        {expression{code: []byte{0x77, 0x10, 0x06}}, 0x7011, true},
		"CFA pushed":          {expression{code: []byte{0x23, 8}, cfa: 0x100, pushCFA: true}, 0x108, true},
		"CFA not pushed":      {expression{code: []byte{0x23, 8}, cfa: 0x100}, 0, false},
		"PLT stub":            {expression{code: plt}, 0x7008, true},
		"unknown register":    {expression{code: []byte{0x70, 0}}, 0, false},
		"unreadable memory":   {expression{code: []byte{0x30, 0x06}}, 0, false},
		"division by zero":    {expression{code: []byte{0x31, 0x30, 0x1b}}, 0, false},
		"empty":               {expression{}, 0, false},
		"huge implicit value": {expression{code: []byte{0x9e, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}}, 0, false},
		"hidden by a jump":    {expression{code: []byte{0x2f, 1, 0, 0x08, 0x9e, 0xff, 0xff, 0xff, 0x7f}}, 0, false},
		"register location":   {expression{code: []byte{0x50}}, 0, false},
		"endless loop":        {expression{code: []byte{0x31, 0x2f, 0xfc, 0xff}}, 0, false},
		"jump forward":        {expression{code: []byte{0x35, 0x2f, 1, 0, 0x36}}, 5, true},
		"call_frame_cfa":      {expression{code: []byte{0x9c}}, 0, false},
		"cut operand":         {expression{code: []byte{0x0e, 1, 2}}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.e.regs = &regs
			got, err := test.e.evaluate(&stackReader{memory: ramp{}})
			if (err == nil) != test.ok || err == nil && got != test.want {
				t.Errorf("= %#x, %v; want %#x, ok %v", got, err, test.want, test.ok)
			}
		})
	}
}

func TestStackReader(t *testing.T) {
	s := stackReader{memory: ramp{}}
	for _, addr := range []evidence.Addr{0x1000, 0x1ff8, 0x1008, 0x2000, 0x1800} {
		if v, err := s.word(addr); err != nil || v != uint64(addr)+1 {
			t.Errorf("word(%v) = %#x, %v", addr, v, err)
		}
	}
	want := fmt.Sprintf("%#x", uint64(0x2001)<<32|0x1ff9>>32)
	if v, err := s.word(0x1ffc); err != nil || fmt.Sprintf("%#x", v) != want {
		t.Errorf("a word across two pages = %#x, %v; want %s", v, err, want)
	}
	if _, err := s.word(0x800); err == nil {
		t.Error("an unmapped word was read")
	}
}
