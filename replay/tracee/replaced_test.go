package tracee

import (
	"bytes"
	"testing"

	"diagnose/internal/procmaps"
)

// TestCover: the program's own bytes are shown in place of the code, and only of the code.
func TestCover(t *testing.T) {
	m := &Memory{replaced: []Replacement{
		{Addr: 0x1002, Own: []byte{1, 2, 3, 4, 5}, Code: []byte{0xe9, 9, 9, 9, 9}},
		{Addr: 0x1009, Own: []byte{6}, Code: []byte{Int3}},
	}}
	text := []byte{0x90, 0x90, 0xe9, 9, 9, 9, 9, 0x90, 0x90, Int3, 0x90}
	own := []byte{0x90, 0x90, 1, 2, 3, 4, 5, 0x90, 0x90, 6, 0x90}
	other := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for from := range text {
		for end := from; end <= len(text); end++ {
			for _, x := range []struct{ memory, want []byte }{{text, own}, {own, own}, {other, other}} {
				got := bytes.Clone(x.memory[from:end])
				m.cover(got, uint64(0x1000+from))
				if !bytes.Equal(got, x.want[from:end]) {
					t.Errorf("%x is shown as %x from %d on", x.memory[from:end], got, from)
				}
			}
		}
	}
}

// TestObject: mappings of one loading of a file have one object, others do not.
func TestObject(t *testing.T) {
	lines, err := procmaps.Parse([]byte("1000-2000 r--p 00000000 fe:00 7 /a.so\n2000-3000 r-xp 00001000 fe:00 7 /a.so (deleted)\n" +
		"3000-4000 r-xp 00001000 fe:00 7 /a.so\n4000-5000 r-xp 00003000 fe:00 8 /a.so\n5000-6000 r-xp 00000000 00:00 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	maps := MappingsOf(lines)
	first := maps[0].Object()
	if maps[1].Object() != first || maps[2].Object() == first || maps[3].Object() == first || maps[4].Object() != (Object{}) {
		t.Errorf("%+v", maps)
	}
}
