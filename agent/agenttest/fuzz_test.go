package agenttest_test

import (
	"encoding/binary"
	"testing"

	"diagnose/agent"
	"diagnose/agent/agenttest"
	"diagnose/canary"
	"diagnose/evidence"
	"diagnose/quarantine"
)

// populated is a heap with objects of every kind, and where its parts are.
func populated() (b *agenttest.Heap, parts []evidence.Addr) {
	b = agenttest.New()
	by := agent.Call{Site: b.Site(0x401000, 0x402000), Thread: b.Thread(100, false)}
	slot := b.Small(64, 40)
	for i := range 20 {
		o := b.Alloc(slot+evidence.Addr(64*i), 3*i%56, by, agent.API(i%3))
		switch i % 5 {
		case 1:
			b.Free(o, by, 1, 3)
		case 2:
			b.Release(o)
		}
	}
	wide := b.Small(12288, 4)
	b.Alloc(wide, 12000, by, agent.APIMalloc)
	large := b.Large(8192-200000%16, 200000+200000%16, 24, by, false)
	gone := b.Large(64, 100000, 24, by, false)
	b.FreeLarge(gone, by)
	b.Error(agent.RawError{Kind: agent.ErrorOverflow, WordValid: 1, Object: uint64(slot), Frames: 3})
	b.Memory.Write(slot+10, []byte("some text that does not end for a while"))
	b.Finish()
	r := &b.Root
	return b, []evidence.Addr{evidence.Addr(r.Base), evidence.Addr(r.Errors), evidence.Addr(r.Heaps.Start), evidence.Addr(r.Heaps.Start) + evidence.Addr(heapSize),
		evidence.Addr(r.Threads.Start), evidence.Addr(r.Sites.Start), evidence.Addr(r.Spans.Start), evidence.Addr(r.Meta.Start), slot, wide, large, gone}
}

// FuzzHeap reads a heap parts of which an attacker wrote: each 12 bytes of
// input say which part, where in it, and a word.
func FuzzHeap(f *testing.F) {
	f.Add([]byte{})
	b, parts := populated()
	change := func(list ...uint64) (data []byte) {
		for i := 0; i < len(list); i += 3 {
			data = append(data, byte(list[i]), byte(list[i+1]>>16), byte(list[i+1]>>8), byte(list[i+1]))
			data = binary.LittleEndian.AppendUint64(data, list[i+2])
		}
		return data
	}
	f.Add(change(6, 128, 1|0xffff<<32))                             // a span of very many units
	f.Add(change(6, 128+16, ^uint64(0)))                            // of very many slots
	f.Add(change(6, 128+40, b.Root.Objects.Start))                  // whose words are objects
	f.Add(change(6, 256, 3|1<<32, 6, 384, 3|2<<32))                 // interior units that begin nothing
	f.Add(change(3, 128+64*3+8, 1<<32))                             // a ring of 2^32 entries
	f.Add(change(3, 128+64*3+16, 0xffffffff))                       // a ring with all storage
	f.Add(change(7, 8, ^uint64(0), 7, 16, 1<<58|0x3ffff))           // words
	f.Add(change(0, 8*20, 1<<40, 0, 8*21, 1<<40, 0, 8*9, 0x3ffff0)) // windows
	f.Fuzz(func(t *testing.T, data []byte) {
		memory := overlay{below: b.Memory, pages: agenttest.Memory{}}
		for ; len(data) >= 12; data = data[12:] {
			at := parts[int(data[0])%len(parts)] + evidence.Addr(uint32(data[1])<<16|uint32(data[2])<<8|uint32(data[3]))
			memory.write(at, data[4:12])
		}
		h, err := agent.Open(memory, 0)
		if err != nil {
			return
		}
		checkResults(t, h, parts)
	})
}

// overlay is a memory whose changed pages lie over those of another one.
type overlay struct{ below, pages agenttest.Memory }

func (m overlay) ReadMemory(addr evidence.Addr, p []byte) (done int, err error) {
	for done < len(p) {
		at := addr + evidence.Addr(done)
		n := min(len(p)-done, 4096-int(at%4096))
		from := m.below
		if m.pages[uint64(at)/4096] != nil {
			from = m.pages
		}
		n, err = from.ReadMemory(at, p[done:done+n])
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// write changes mapped memory; the last bytes may be on the next page.
func (m overlay) write(addr evidence.Addr, p []byte) {
	for i := range p {
		at := addr + evidence.Addr(i)
		page := uint64(at) / 4096
		if m.below[page] == nil {
			continue
		}
		if m.pages[page] == nil {
			copied := *m.below[page]
			m.pages[page] = &copied
		}
		m.pages[page][at%4096] = p[i]
	}
}

func checkResults(t *testing.T, h *agent.Heap, parts []evidence.Addr) {
	c := canary.CheckHeap(h, canary.HeapOptions{Workers: 2, Limit: 20})
	for i, d := range c.Damages {
		checkDamage(t, d.Object, d.Damage)
		if i > 0 && d.Object.Addr < c.Damages[i-1].Object.Addr {
			t.Errorf("%v comes after %v", d.Object.Addr, c.Damages[i-1].Object.Addr)
		}
	}
	q := quarantine.Check(h, quarantine.Options{Workers: 2, Limit: 20})
	for _, d := range q.Damages {
		checkDamage(t, d.Object, d.Damage)
	}
	if c.Unread > 0 && len(c.Limits) == 0 || q.Unread > 0 && len(q.Limits) == 0 {
		t.Errorf("not a word about %d and %d unread objects", c.Unread, q.Unread)
	}
	h.Summarize(2)
	if list, _, err := h.Errors(); err == nil {
		for _, e := range list {
			h.Site(e.Thread)
			h.Thread(e.Thread)
		}
	}
	for _, at := range parts {
		near, found, err := h.Nearest(at)
		if found && err == nil && near.Where == agent.Inside != near.Object.Contains(at) {
			t.Errorf("%v in %+v", at, near)
		}
		h.FillWord(h.FillWordOf(&near.Object) + 8)
	}
}

func checkDamage(t *testing.T, o agent.Object, d evidence.Damage) {
	if d.End <= d.Start || d.Overwritten < 1 || uint64(d.Overwritten) > uint64(d.End-d.Start) || d.Offset != int64(d.Start-o.Addr) ||
		len(d.Bytes) > 128 || len(d.Bytes) != 2*len(d.Text) || len(d.Bytes) != len(d.Expected) || len(d.Before) > 64 {
		t.Errorf("%+v: %+v", o, d)
	}
}
