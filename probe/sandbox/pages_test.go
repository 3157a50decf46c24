package sandbox

import (
	"encoding/binary"
	"errors"
	"testing"

	"diagnose/evidence"
)

// FuzzPages asks for pages at any addresses, as hostile code may. What the process is told to map stays within the pool, meets no
// mapping that there is, and is nowhere where the process has memory of its own.
func FuzzPages(f *testing.F) {
	f.Add([]byte{0, 16, 1, 0, 2, 0, 3, 0, 255, 255, 0, 17, 0, 16})
	f.Add([]byte{1, 1, 1, 2, 1, 3, 1, 4, 1, 5, 255, 255, 1, 1})
	pool := make([]byte, poolPages*pageSize)
	f.Fuzz(func(t *testing.T, data []byte) {
		own := zone{0x80 * pageSize, 0x90 * pageSize}
		p := &pages{pool: pool, program: &neighbour{own: []zone{own}}}
		mapped := map[uint64]uint32{}
		apply := func(list []operation) {
			if len(list) > mostOps {
				t.Fatalf("%d operations", len(list))
			}
			for _, o := range list {
				for n := range o.Count {
					addr := o.Addr + uint64(n)*pageSize
					page, has := mapped[addr]
					switch {
					case o.Page == unmap && !has:
						t.Fatalf("%#x is unmapped and was not mapped", addr)
					case o.Page == unmap:
						delete(mapped, addr)
					case has:
						t.Fatalf("%#x is mapped twice, it has page %d", addr, page)
					case o.Page+n < argumentPages || o.Page+n >= poolPages || addr < pageSize || addr >= own.start && addr < own.end:
						t.Fatalf("page %d is mapped at %#x", o.Page+n, addr)
					default:
						mapped[addr] = o.Page + n
					}
				}
			}
		}
		gone := false // the second half of the memory
		memory := func(addr evidence.Addr, b []byte) error {
			end := uint64(addr) + uint64(len(b))
			if end < uint64(addr) || gone && end > 0x8000*pageSize {
				return errors.New("no memory")
			}
			b[0] = byte(addr >> 12)
			return nil
		}
		apply(p.begin(memory))
		for ; len(data) >= 2; data = data[2:] {
			number := binary.LittleEndian.Uint16(data)
			if number == 0xffff {
				gone = !gone
				apply(p.begin(memory))
				for addr, page := range mapped {
					if pool[int(page)*pageSize] != byte(addr>>12) && p.runs[0].addr == addr {
						t.Fatalf("page %d is not that of %#x", page, addr)
					}
				}
				continue
			}
			apply(p.want(uint64(number)*pageSize+5, memory))
		}
		apply(p.want(^uint64(0), memory))
	})
}
