package image

import (
	"encoding/binary"
	"testing"

	"diagnose/evidence"
)

// flatMemory is bytes from base on.
type flatMemory struct {
	base evidence.Addr
	data []byte
}

func (m *flatMemory) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	if addr < m.base || addr-m.base >= evidence.Addr(len(m.data)) {
		return 0, &MemoryError{Addr: addr, Reason: "is not mapped", Unmapped: true}
	}
	n := copy(p, m.data[addr-m.base:])
	if n < len(p) {
		return n, &MemoryError{Addr: addr + evidence.Addr(n), Reason: "is not mapped", Unmapped: true}
	}
	return n, nil
}

// links makes link_map structures, each given by its name and the index of
// the next one.
func links(names []string, next []int) *flatMemory {
	const base, size, text = 0x1000, 64, 32
	m := &flatMemory{base: base, data: make([]byte, size*len(names))}
	le := binary.LittleEndian
	for i, name := range names {
		b := m.data[size*i : size*(i+1)]
		le.PutUint64(b, uint64(i)<<20)
		le.PutUint64(b[8:], uint64(base+size*i+text))
		le.PutUint64(b[16:], uint64(i)<<20+0x100)
		if next[i] >= 0 {
			le.PutUint64(b[24:], uint64(base+size*next[i]))
		}
		copy(b[text:], name)
	}
	return m
}

func TestWalkLinks(t *testing.T) {
	list := walkLinks(links([]string{"", "liba", "libb"}, []int{1, 2, -1}), 0x1000)
	if len(list) != 3 || list[1].name != "liba" || list[2].bias != 2<<20 || list[2].dynamic != 2<<20+0x100 {
		t.Errorf("%+v", list)
	}
	if list := walkLinks(links([]string{"", "liba", "libb"}, []int{1, 2, 1}), 0x1000); len(list) != 3 {
		t.Errorf("a cycle gives %d entries", len(list))
	}
	if list := walkLinks(links([]string{"", "liba"}, []int{1, 500}), 0x1000); len(list) != 2 {
		t.Errorf("a wild pointer gives %d entries", len(list))
	}
}

func FuzzLinkMap(f *testing.F) {
	f.Add(links([]string{"", "liba", "libb"}, []int{1, 2, -1}).data)
	f.Add(links([]string{"", "liba"}, []int{1, 0}).data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &flatMemory{0x1000, data}
		if list := walkLinks(m, 0x1000); len(list) > len(data) {
			t.Errorf("%d links in %d bytes", len(list), len(data))
		}
		dynamicValue(m, 0x1000, 21)
		if image, err := readELFImage(m, 0x1000); err == nil {
			image.buildID(m, 0x1000)
			image.biasFor(0x1000, 0)
		}
	})
}
