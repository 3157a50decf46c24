package quarantine_test

import (
	"reflect"
	"strings"
	"testing"

	"diagnose/agent"
	"diagnose/agent/agenttest"
	"diagnose/evidence"
	"diagnose/quarantine"
)

func check(t *testing.T, b *agenttest.Heap, options quarantine.Options) *quarantine.Result {
	t.Helper()
	h, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	return quarantine.Check(h, options)
}

var by = agent.Call{Site: 77, Thread: 5}

// kinds are the ways in which an object of a size is freed and still filled.
var kinds = map[string]func(b *agenttest.Heap, size int) evidence.Addr{
	"quarantined": func(b *agenttest.Heap, size int) evidence.Addr {
		o := b.Alloc(b.Small(256, 10), size, agent.Call{Site: 1}, agent.APIMalloc)
		b.Free(o, by, 1, 15)
		return o
	},
	"reusable": func(b *agenttest.Heap, size int) evidence.Addr {
		o := b.Alloc(b.Small(256, 10)+512, size, agent.Call{Site: 1}, agent.APIMalloc)
		b.Release(o)
		return o
	},
	"reusable in large slots": func(b *agenttest.Heap, size int) evidence.Addr {
		o := b.Alloc(b.Small(8192, 10)+8192, size, agent.Call{Site: 1}, agent.APIMalloc)
		b.Release(o)
		return o
	},
	"large": func(b *agenttest.Heap, size int) evidence.Addr {
		o := b.Large(64, 200000+size, 24, agent.Call{Site: 1}, false)
		b.FreeLarge(o, by)
		return o
	},
}

func TestWhole(t *testing.T) {
	for name, make := range kinds {
		b := agenttest.New()
		n := 0
		for size := 0; size < 240; size += 7 {
			make(b, size)
			if n++; name == "quarantined" && n == agenttest.RingSize {
				break
			}
		}
		r := check(t, b, quarantine.Options{})
		if len(r.Damages) != 0 || len(r.Limits) != 0 || r.Checked != uint64(n) || r.Unread != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestWrites(t *testing.T) {
	for name, make := range kinds {
		for _, c := range []struct {
			name             string
			size, at         int
			bytes            string
			start, end       int
			overwritten      int
			reaches, nothing bool
		}{
			{name: "first byte", size: 100, at: 0, bytes: "x", start: 0, end: 1, overwritten: 1},
			{name: "a word", size: 100, at: 8, bytes: "\x00\xff\xff\xff\xff\xff\xff\xff", start: 8, end: 16, overwritten: 8},
			{name: "last byte of the object", size: 100, at: 99, bytes: "x", start: 99, end: 100, overwritten: 1},
			{name: "after the object", size: 100, at: 100, bytes: "x", start: 100, end: 101, overwritten: 1},
			{name: "from before the object", size: 100, at: -8, bytes: "0123456789abcdef!", start: 0, end: 9, overwritten: 9},
			{name: "last byte of a long fill", size: 200, at: 127, bytes: "x", start: 127, end: 128, overwritten: 1, reaches: true},
			{name: "after a long fill", size: 200, at: 128, bytes: "x", nothing: true},
			{name: "one byte", size: 1, at: 0, bytes: "x", start: 0, end: 1, overwritten: 1},
			{name: "everything", size: 33, at: 0, bytes: strings.Repeat("z", 200), start: 0, end: 128, overwritten: 128, reaches: true},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				size := c.size
				if name == "large" && size < 128 {
					t.Skip("a large object is filled to the limit")
				}
				b := agenttest.New()
				o := make(b, size)
				b.Memory.Write(o+evidence.Addr(c.at), []byte(c.bytes))
				r := check(t, b, quarantine.Options{Workers: 2})
				if c.nothing {
					if len(r.Damages) != 0 || r.Checked != 1 {
						t.Errorf("got %+v", r)
					}
					return
				}
				if len(r.Damages) != 1 || r.Checked != 1 {
					t.Fatalf("got %+v", r)
				}
				d := r.Damages[0]
				if d.Object.Addr != o || d.Damage.Offset != int64(c.start) || d.Damage.End != o+evidence.Addr(c.end) ||
					d.Damage.Overwritten != c.overwritten || d.Damage.Reaches != c.reaches || d.Object.Allocated.Site != 1 {
					t.Errorf("got %+v", d)
				}
				if want := (agent.Call{}); d.Object.Freed != by && strings.HasPrefix(name, "reus") == (d.Object.Freed != want) {
					t.Errorf("freed by %+v", d.Object.Freed)
				}
			})
		}
	}
}

// The fill says whose it is: that of another object is damage.
func TestAnothersFill(t *testing.T) {
	b := agenttest.New()
	o := kinds["quarantined"](b, 64)
	other := agent.FillWord(b.Root.Objects.Start, uint64(o)+16)
	b.Memory.Write(o+32, []byte{byte(other), byte(other >> 8), byte(other >> 16)})
	r := check(t, b, quarantine.Options{})
	if len(r.Damages) != 1 || r.Damages[0].Damage.Offset != 33 || r.Damages[0].Damage.Overwritten != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestNeighbour(t *testing.T) {
	for _, at := range []int{0, 1} {
		b := agenttest.New()
		slot := b.Small(64, 10)
		b.Alloc(slot, 50, agent.Call{Site: 9}, agent.APIMalloc)
		o := b.Alloc(slot+64, 50, agent.Call{}, agent.APIMalloc)
		b.Free(o, by, 1, 3)
		b.Memory.Write(o+evidence.Addr(at), []byte("zz"))
		r := check(t, b, quarantine.Options{})
		if len(r.Damages) != 1 {
			t.Fatalf("got %+v", r)
		}
		if before := r.Damages[0].Before; (before != nil) != (at == 0) || before != nil && before.Allocated.Site != 9 {
			t.Errorf("at %d: before is %+v", at, before)
		}
	}
}

// What goes up to the next slot, and not into the object, may come from there.
func TestNeighbourBehind(t *testing.T) {
	for _, c := range []struct {
		at, n  int
		beyond bool
	}{{60, 4, true}, {50, 14, true}, {49, 15, false}, {60, 3, false}} {
		b := agenttest.New()
		slot := b.Small(64, 10)
		o := b.Alloc(slot, 50, agent.Call{}, agent.APIMalloc)
		b.Alloc(slot+64, 50, agent.Call{Site: 9}, agent.APIMalloc)
		b.Free(o, by, 1, 3)
		b.Memory.Write(o+evidence.Addr(c.at), []byte(strings.Repeat("z", c.n)))
		r := check(t, b, quarantine.Options{})
		if len(r.Damages) != 1 || r.Damages[0].Damage.Offset != int64(c.at) {
			t.Fatalf("got %+v", r)
		}
		if beyond := r.Damages[0].Beyond; (beyond != nil) != c.beyond || beyond != nil && beyond.Allocated.Site != 9 {
			t.Errorf("%+v: beyond is %+v", c, beyond)
		}
	}
}

// Nothing gets past a guard page.
func TestNeighbourBehindGuardPage(t *testing.T) {
	b := agenttest.New()
	b.Large(16384, 131072-4096-16384-8, 8, agent.Call{}, true)
	o := b.Alloc(b.Small(64, 10), 50, agent.Call{}, agent.APIMalloc)
	b.Free(o, by, 1, 3)
	b.Memory.Write(o, []byte("zz"))
	if r := check(t, b, quarantine.Options{}); len(r.Damages) != 1 || r.Damages[0].Before != nil {
		t.Errorf("got %+v", r)
	}
}

// A call that was interrupted leaves a slot that no ring lists, and nothing is
// promised of its bytes.
func TestTorn(t *testing.T) {
	b := agenttest.New()
	slot := b.Small(64, 10)
	o := b.Alloc(slot, 50, agent.Call{}, agent.APIMalloc)
	b.SetState(o, agent.Quarantined) // free: the fill comes next
	taken := b.Alloc(slot+64, 50, agent.Call{}, agent.APIMalloc)
	b.Free(taken, by, 1, 3)
	b.Heaps[1].Bins[3].Ring.Head++ // malloc: the canary comes next
	b.Memory.Write(taken+16, make([]byte, 48))
	large := b.Large(64, 200000, 24, agent.Call{}, false)
	b.SetState(large, agent.Quarantined) // free: the kind of span comes last
	leaving := b.Alloc(slot+128, 50, agent.Call{}, agent.APIMalloc)
	b.Free(leaving, by, 1, 4)
	b.SetState(leaving, agent.Reusable) // about to move to the super-heap, and filled
	r := check(t, b, quarantine.Options{})
	if len(r.Damages) != 0 || len(r.Limits) != 0 || r.Checked != 1 {
		t.Errorf("got %+v", r)
	}
	b.Memory.Write(leaving, []byte("x"))
	if r := check(t, b, quarantine.Options{}); len(r.Damages) != 1 || r.Further != 0 {
		t.Errorf("got %+v", r)
	}
}

func TestReported(t *testing.T) {
	b := agenttest.New()
	o := kinds["reusable"](b, 64)
	b.Memory.Write(o, []byte("x"))
	b.SetWord(o, b.Word(o)|1<<agent.WordReported)
	if r := check(t, b, quarantine.Options{}); len(r.Damages) != 1 || !r.Damages[0].Object.Reported {
		t.Errorf("got %+v", r)
	}
}

// A ring that lists an object outside of quarantine is reported, and the rest is checked.
func TestWrongEntries(t *testing.T) {
	for want, entry := range map[string]func(b *agenttest.Heap, slot evidence.Addr) evidence.Addr{
		"which is live":          func(b *agenttest.Heap, slot evidence.Addr) evidence.Addr { return slot },
		"which is fresh":         func(b *agenttest.Heap, slot evidence.Addr) evidence.Addr { return slot + 128 },
		"where no object begins": func(b *agenttest.Heap, slot evidence.Addr) evidence.Addr { return slot + 3 },
		"0x0":                    func(*agenttest.Heap, evidence.Addr) evidence.Addr { return 0 },
		"0xffffffffffffffff":     func(*agenttest.Heap, evidence.Addr) evidence.Addr { return ^evidence.Addr(0) },
		"which is quarantined": func(b *agenttest.Heap, _ evidence.Addr) evidence.Addr {
			o := b.Large(64, 200000, 24, agent.Call{}, false)
			b.FreeLarge(o, by)
			return o
		},
	} {
		b := agenttest.New()
		slot := b.Small(64, 10)
		b.Alloc(slot, 50, agent.Call{}, agent.APIMalloc)
		b.Enter(entry(b, slot), by, 1, 3)
		o := b.Alloc(slot+64, 50, agent.Call{}, agent.APIMalloc)
		b.Free(o, by, 1, 3)
		b.Memory.Write(o, []byte("x"))
		r := check(t, b, quarantine.Options{})
		if len(r.Damages) != 1 || r.Unread != 1 || len(r.Limits) != 1 || !strings.Contains(r.Limits[0].Text, want) {
			t.Errorf("%s: %+v", want, r)
		}
	}
}

func TestUnreadable(t *testing.T) {
	for name, make := range kinds {
		b := agenttest.New()
		o := make(b, 100)
		b.Memory.Unmap(o, 1)
		r := check(t, b, quarantine.Options{})
		if r.Unread != 1 || r.Checked != 0 || len(r.Limits) != 1 || !strings.Contains(r.Limits[0].Text, "is not mapped") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	b := agenttest.New()
	kinds["quarantined"](b, 100)
	b.Memory.Unmap(evidence.Addr(b.Heaps[1].Bins[15].Ring.Entries), 1)
	if r := check(t, b, quarantine.Options{}); len(r.Limits) != 1 || r.Checked != 0 {
		t.Errorf("a ring: %+v", r)
	}
}

func TestLimitAndOrder(t *testing.T) {
	b := agenttest.New()
	slot := b.Small(32, 9000)
	for i := range 9000 {
		o := b.Alloc(slot+evidence.Addr(32*i), 20, agent.Call{}, agent.APIMalloc)
		if i%1000 == 3 {
			b.Free(o, by, 1, 1)
		} else {
			b.Release(o)
		}
		b.Memory.Write(o+4, []byte("x"))
	}
	want := check(t, b, quarantine.Options{Workers: 1, Limit: 5})
	if len(want.Damages) != 5 || want.Further != 8995 || want.Checked != 9000 || want.Damages[3].Object.Freed != by {
		t.Fatalf("got %+v", want)
	}
	for i, d := range want.Damages {
		if d.Object.Addr != slot+evidence.Addr(32*i) {
			t.Errorf("number %d is %v", i, d.Object.Addr)
		}
	}
	for range 5 {
		if got := check(t, b, quarantine.Options{Workers: 5, Limit: 5}); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v", got)
		}
	}
}
