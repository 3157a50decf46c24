package replay

import (
	"encoding/binary"
	"testing"

	"diagnose/agent"
)

// siteTable has sites with these innermost addresses.
func siteTable(pcs ...uint64) []byte {
	var b []byte
	for i, pc := range pcs {
		b = binary.LittleEndian.AppendUint32(b, uint32(i*7)) // the link
		b = binary.LittleEndian.AppendUint32(b, 1)
		b = binary.LittleEndian.AppendUint64(b, pc)
		b = append(b, make([]byte, 8*(agent.Frames-1))...)
	}
	return b
}

func TestRenumber(t *testing.T) {
	r := renumber(siteTable(0, 10, 20, 30), siteTable(0, 10, 30, 20))
	if r == nil {
		t.Fatal("the same sites in another order are not recognised")
	}
	word := func(size, site uint64) uint64 { return size | site<<agent.WordSite | 5<<agent.WordThread }
	for _, c := range []struct {
		want, have uint64
		same       bool
	}{
		{word(100, 2), word(100, 3), true},
		{word(100, 2), word(100, 2), true}, // a number that is no site's
		{word(100, 2), word(100, 1), false},
		{word(100, 2), word(101, 3), false},
		{2 | 9<<32, 3 | 9<<32, true},
		{9 | 3<<32, 9 | 2<<32, true},
		{9 | 3<<32, 8 | 2<<32, false},
		{1, 4, false},
	} {
		if got := r.same(c.want, c.have); got != c.same {
			t.Errorf("%#x and %#x: %v, want %v", c.want, c.have, got, c.same)
		}
	}
	for _, have := range [][]byte{siteTable(0, 10, 20, 40), siteTable(0, 10, 20), siteTable(0, 10, 20, 20), siteTable(0, 10, 20, 30)} {
		if renumber(siteTable(0, 10, 20, 30), have) != nil {
			t.Errorf("tables of %d and 4 sites are taken for the same sites in another order", len(have)/siteBytes)
		}
	}
}
