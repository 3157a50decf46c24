package canary_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"diagnose/agent"
	"diagnose/agent/agenttest"
	"diagnose/canary"
	"diagnose/evidence"
)

func checkHeap(t *testing.T, b *agenttest.Heap, options canary.HeapOptions) *canary.HeapResult {
	t.Helper()
	h, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	return canary.CheckHeap(h, options)
}

// row is a span of slots of 48 bytes with an object of 24 bytes in each of the
// first five.
func row() (b *agenttest.Heap, slot func(i int) evidence.Addr) {
	b = agenttest.New()
	first := b.Small(48, 10)
	slot = func(i int) evidence.Addr { return first + evidence.Addr(48*i) }
	for i := range 5 {
		b.Alloc(slot(i), 24, agent.Call{Site: uint32(i)}, agent.APIMalloc)
	}
	return b, slot
}

func TestHeapIsWhole(t *testing.T) {
	b, slot := row()
	b.Free(slot(2), agent.Call{}, 1, 2)
	b.Release(slot(3))
	b.Large(65536-24, 100008, 65536-24+131072-100008-65536, agent.Call{}, false)
	for size := range 41 {
		b.Alloc(b.Small(48, 2), size, agent.Call{}, agent.APIMalloc)
	}
	r := checkHeap(t, b, canary.HeapOptions{})
	if len(r.Damages) != 0 || r.Further != 0 || len(r.Limits) != 0 || r.Checked != 3+1+41 || r.Unread != 0 {
		t.Errorf("got %+v", r)
	}
}

// A freed slot has no canary, and neither has a fresh one.
func TestHeapUnguarded(t *testing.T) {
	b, slot := row()
	b.Free(slot(2), agent.Call{}, 1, 2)
	b.Release(slot(3))
	b.SetState(slot(4), agent.Quarantined)
	for _, i := range []int{2, 3, 4, 7} {
		b.Memory.Write(slot(i)+24, make([]byte, 24))
	}
	if r := checkHeap(t, b, canary.HeapOptions{}); len(r.Damages) != 0 || r.Checked != 2 {
		t.Errorf("got %+v", r)
	}
}

func TestHeapOverflow(t *testing.T) {
	for _, c := range []struct {
		name          string
		object        int // 4 is the last one ever allocated
		offset        int
		bytes         string
		overwritten   int
		gap           uint64
		reaches       bool
		beyond        int // -1: none
		fromBeyond    bool
		beyondDamaged bool
	}{
		{name: "first byte", object: 1, offset: 24, bytes: "\x00", overwritten: 1, beyond: -1},
		{name: "last byte", object: 1, offset: 47, bytes: "Z", overwritten: 1, gap: 23, reaches: true, beyond: 2, fromBeyond: true},
		{name: "middle of a word", object: 1, offset: 27, bytes: "abc", overwritten: 3, gap: 3, beyond: -1},
		{name: "across words", object: 1, offset: 30, bytes: "abcdefghij", overwritten: 10, gap: 6, beyond: -1},
		{name: "all", object: 1, offset: 24, bytes: strings.Repeat("x", 24), overwritten: 24, reaches: true, beyond: 2},
		{name: "into the next", object: 1, offset: 20, bytes: strings.Repeat("x", 40), overwritten: 24, reaches: true, beyond: 2},
		{name: "over the next", object: 1, offset: 24, bytes: strings.Repeat("x", 48+10), overwritten: 24, reaches: true, beyond: 2, beyondDamaged: true},
		{name: "before fresh memory", object: 4, offset: 24, bytes: strings.Repeat("x", 24), overwritten: 24, reaches: true, beyond: -1},
		{name: "apart", object: 1, offset: 24, bytes: "x\xb3\xe9\xf5\xc1\xd3\xa7x", overwritten: 8, beyond: -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, slot := row()
			b.Memory.Write(slot(c.object)+evidence.Addr(c.offset), []byte(c.bytes))
			r := checkHeap(t, b, canary.HeapOptions{Workers: 2})
			if len(r.Damages) == 0 || len(r.Limits) != 0 {
				t.Fatalf("got %+v", r)
			}
			d := r.Damages[0]
			if d.Object.Addr != slot(c.object) || d.Side != canary.Behind || d.Object.Allocated.Site != uint32(c.object) {
				t.Errorf("got %+v", d)
			}
			start := max(c.offset, 24)
			if d.Damage.Start != slot(c.object)+evidence.Addr(start) || d.Damage.Offset != int64(start) ||
				d.Damage.Overwritten != c.overwritten || d.Gap != c.gap || d.Damage.Reaches != c.reaches || d.FromBeyond != c.fromBeyond {
				t.Errorf("got %+v", d)
			}
			if c.beyond < 0 != (d.Beyond == nil) || d.Beyond != nil && d.Beyond.Addr != slot(c.beyond) || d.BeyondDamaged != c.beyondDamaged {
				t.Errorf("beyond is %+v, %v", d.Beyond, d.BeyondDamaged)
			}
			if want := 1; c.beyondDamaged != (len(r.Damages) > want) {
				t.Errorf("%d damages", len(r.Damages))
			}
			if c.beyondDamaged && (!r.Damages[1].Continues || d.Continues) {
				t.Errorf("got %+v", r.Damages)
			}
		})
	}
}

func TestHeapDamageIsShown(t *testing.T) {
	b, slot := row()
	b.Memory.Write(slot(1)+8, []byte("0123456789abcdef!\n\xff"))
	r := checkHeap(t, b, canary.HeapOptions{})
	guard := binary.LittleEndian.AppendUint64(nil, b.CanaryWord(slot(1)))
	want := evidence.Damage{Start: slot(1) + 24, End: slot(1) + 27, Offset: 24, Overwritten: 3, Bytes: "210aff", Text: "!..", Expected: hex.EncodeToString(guard[:3]),
		Before: hex.EncodeToString([]byte("\x00\x00\x00\x00\x00\x00\x00\x000123456789abcdef"))}
	if len(r.Damages) != 1 || r.Damages[0].Damage != want {
		t.Errorf("got %+v, want %+v", r.Damages, want)
	}
}

func TestHeapDamageIsCut(t *testing.T) {
	b := agenttest.New()
	o := b.Alloc(b.Small(4096, 4), 100, agent.Call{}, agent.APIMalloc)
	b.Memory.Write(o+100, make([]byte, 3000))
	r := checkHeap(t, b, canary.HeapOptions{})
	if len(r.Damages) != 1 {
		t.Fatalf("got %+v", r)
	}
	if d := r.Damages[0].Damage; d.Overwritten != 260 || !d.Reaches || r.Damages[0].Beyond != nil || len(d.Bytes) != 128 || len(d.Text) != 64 || len(d.Expected) != 128 {
		t.Errorf("got %+v", d)
	}
}

// A byte that is overwritten with its old value is no damage.
func TestHeapSameByte(t *testing.T) {
	b, slot := row()
	b.Memory.Write(slot(1)+24, []byte{byte(b.CanaryWord(slot(1)))})
	if r := checkHeap(t, b, canary.HeapOptions{}); len(r.Damages) != 0 {
		t.Errorf("got %+v", r.Damages)
	}
}

// Every byte of the canary of objects of every size is compared, and no byte
// after it.
func TestHeapEveryByte(t *testing.T) {
	for _, slot := range []int{16, 48, 1280} {
		b := agenttest.New()
		o := b.Small(slot, 3)
		h, err := b.Open()
		if err != nil {
			t.Fatal(err)
		}
		for size := 0; size+8 <= slot; size += 1 + size/10 {
			end := min(slot, (size+7)&^7+agent.MaxCanary)
			for at := size; at < end; at += 1 + (at-size)/24 {
				b.Alloc(o, size, agent.Call{}, agent.APIMalloc)
				b.Memory.Write(o+evidence.Addr(at), []byte{0x41})
				r := canary.CheckHeap(h, canary.HeapOptions{Workers: 1})
				if len(r.Damages) != 1 || r.Damages[0].Damage.Offset != int64(at) || r.Damages[0].Damage.Overwritten != 1 ||
					r.Damages[0].Damage.Reaches != (at == end-1) {
					t.Fatalf("slot of %d, size %d, byte %d: %+v", slot, size, at, r)
				}
			}
			b.Alloc(o, size, agent.Call{}, agent.APIMalloc)
			b.Memory.Write(o+evidence.Addr(end), make([]byte, slot-end))
			if r := canary.CheckHeap(h, canary.HeapOptions{Workers: 1}); len(r.Damages) != 0 {
				t.Fatalf("slot of %d, size %d: %+v", slot, size, r)
			}
		}
	}
}

func TestHeapLastSlot(t *testing.T) {
	b := agenttest.New()
	first := b.Small(64, 1023) // fills its unit: the next span's guard begins after it
	last := b.Alloc(first+64*1022, 56, agent.Call{}, agent.APIMalloc)
	next := b.Alloc(b.Small(64, 10), 8, agent.Call{}, agent.APIMalloc)
	b.Memory.Write(last+56, []byte(strings.Repeat("y", 8+30)))
	b.Memory.Write(next+8, []byte("y"))
	r := checkHeap(t, b, canary.HeapOptions{})
	if len(r.Damages) != 3 || r.Damages[2].Side != canary.Behind || r.Damages[2].Continues {
		t.Fatalf("got %+v", r.Damages)
	}
	if d := r.Damages[0]; d.Object.Addr != last || d.Beyond == nil || d.Beyond.Addr != next || !d.Damage.Reaches {
		t.Errorf("got %+v", d)
	}
	d := r.Damages[1]
	if d.Object.Addr != next || d.Side != canary.Before || d.Gap != 34 || d.Damage.Offset != -64 || !d.FromBeyond ||
		d.Beyond == nil || d.Beyond.Addr != last || !d.BeyondDamaged {
		t.Errorf("got %+v", d)
	}
}

func TestHeapUnderflow(t *testing.T) {
	for _, freed := range []bool{false, true} {
		b, slot := row()
		if freed {
			b.Free(slot(0), agent.Call{}, 1, 2)
		}
		b.Memory.Write(slot(0)-4, []byte("abcd"))
		r := checkHeap(t, b, canary.HeapOptions{})
		if len(r.Damages) != 1 {
			t.Fatalf("got %+v", r)
		}
		d := r.Damages[0]
		if d.Side != canary.Before || d.Object.Addr != slot(0) || d.Damage.Offset != -4 || d.Damage.Overwritten != 4 || d.Gap != 0 ||
			d.Damage.Reaches || d.Beyond != nil || d.Damage.Text != "abcd" || (d.Object.State == agent.Live) == freed {
			t.Errorf("got %+v", d)
		}
	}
}

// No code can have written below a slot that was never allocated.
func TestHeapFreshFront(t *testing.T) {
	b := agenttest.New()
	b.Memory.Write(b.Small(48, 10)-4, []byte("abcd"))
	if r := checkHeap(t, b, canary.HeapOptions{}); len(r.Damages) != 0 {
		t.Errorf("got %+v", r)
	}
}

func TestLargeObjects(t *testing.T) {
	const size = 150000
	for _, c := range []struct {
		name          string
		offset, rest  int
		guarded       bool
		at            int // relative to the object
		bytes         string
		side          canary.Side
		reaches       bool
		gap           uint64
		beyond, clean bool
	}{
		{name: "directly after, right aligned", offset: 20000 - size%4096 + 4096*2 - 20000%4096 - 8, rest: 8, guarded: true, at: size, bytes: "x", side: canary.Behind},
		{name: "last byte, right aligned", offset: 20000 - size%4096 + 4096*2 - 20000%4096 - 8, rest: 8, guarded: true, at: size + 7, bytes: "x", side: canary.Behind, reaches: true, gap: 7},
		{name: "directly before", offset: 8192, rest: 24, at: -1, bytes: "x", side: canary.Before},
		{name: "first guarded byte", offset: 8192, rest: 24, at: -4096, bytes: "x", side: canary.Before, reaches: true, gap: 4095},
		{name: "farther before than is guarded", offset: 8192, rest: 24, at: -4097, bytes: "x", clean: true},
		{name: "left aligned, before", offset: 64, rest: 5000, at: -64, bytes: "xx", side: canary.Before, reaches: true, gap: 62, beyond: true},
		{name: "left aligned, after", offset: 64, rest: 5000, at: size + 4095, bytes: "x", side: canary.Behind, reaches: true, gap: 4095},
		{name: "left aligned, farther away", offset: 64, rest: 5000, at: size + 4096, bytes: "x", clean: true},
		{name: "at the start of its span", offset: 0, rest: 5000, at: size + 1, bytes: "x", side: canary.Behind, gap: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := agenttest.New()
			neighbour := b.Alloc(b.Small(64, 1023), 56, agent.Call{}, agent.APIMalloc)
			o := b.Large(c.offset, size, c.rest, agent.Call{Site: 3}, c.guarded)
			b.Memory.Write(o+evidence.Addr(c.at), []byte(c.bytes))
			r := checkHeap(t, b, canary.HeapOptions{})
			if c.clean {
				if len(r.Damages) != 0 || r.Checked != 2 {
					t.Errorf("got %+v", r)
				}
				return
			}
			if len(r.Damages) != 1 {
				t.Fatalf("got %+v", r)
			}
			d := r.Damages[0]
			if d.Object.Addr != o || d.Object.Size != size || !d.Object.Large || d.Side != c.side || d.Damage.Offset != int64(c.at) ||
				d.Damage.Overwritten != len(c.bytes) || d.Damage.Reaches != c.reaches || d.Gap != c.gap {
				t.Errorf("got %+v", d)
			}
			if c.beyond != (d.Beyond != nil) || d.Beyond != nil && d.Beyond.Addr != neighbour {
				t.Errorf("beyond is %+v", d.Beyond)
			}
		})
	}
}

func TestLargeOnBothSides(t *testing.T) {
	b := agenttest.New()
	o := b.Large(64, 200000, 24, agent.Call{}, false)
	b.Memory.Write(o-8, []byte("12345678"))
	b.Memory.Write(o+200000, []byte("1"))
	gone := b.Large(64, 200000, 24, agent.Call{}, false)
	b.FreeLarge(gone, agent.Call{})
	b.Memory.Write(gone-8, []byte("12345678")) // a freed one has no canary
	r := checkHeap(t, b, canary.HeapOptions{})
	if len(r.Damages) != 2 || r.Damages[0].Side != canary.Before || r.Damages[1].Side != canary.Behind {
		t.Errorf("got %+v", r.Damages)
	}
}

func TestHeapReported(t *testing.T) {
	b, slot := row()
	b.Memory.Write(slot(1)+24, []byte("x"))
	b.SetWord(slot(1), b.Word(slot(1))|1<<agent.WordReported)
	r := checkHeap(t, b, canary.HeapOptions{})
	if len(r.Damages) != 1 || !r.Damages[0].Object.Reported {
		t.Errorf("got %+v", r.Damages)
	}
}

// The lowest addresses are returned, whichever worker found them first.
func TestHeapLimit(t *testing.T) {
	b := agenttest.New()
	first := b.Small(32, 20000)
	for i := range 20000 {
		o := b.Alloc(first+evidence.Addr(32*i), 24, agent.Call{}, agent.APIMalloc)
		b.Memory.Write(o+24, []byte("x"))
	}
	for _, workers := range []int{1, 2, 7} {
		r := checkHeap(t, b, canary.HeapOptions{Workers: workers, Limit: 10})
		if len(r.Damages) != 10 || r.Further != 19990 || r.Checked != 20000 {
			t.Fatalf("%d damages, %d further, %d checked", len(r.Damages), r.Further, r.Checked)
		}
		for i, d := range r.Damages {
			if d.Object.Addr != first+evidence.Addr(32*i) {
				t.Errorf("%d workers: number %d is %v", workers, i, d.Object.Addr)
			}
		}
	}
}

func TestHeapUnreadable(t *testing.T) {
	for _, slot := range []int{64, 2048} {
		b := agenttest.New()
		first := b.Small(slot, 65536/slot-1)
		per := 4096 / slot
		for i := range 4 * per {
			b.Alloc(first+evidence.Addr(slot*i), slot-8, agent.Call{}, agent.APIMalloc)
		}
		b.Memory.Write(first+evidence.Addr(slot*(4*per)-1), []byte("x"))
		b.Memory.Unmap((first+4096)&^4095, 4096)
		r := checkHeap(t, b, canary.HeapOptions{})
		total := r.Checked + r.Unread
		if total != uint64(4*per) || r.Unread < uint64(per) || r.Unread > uint64(per)+1 || len(r.Damages) != 1 {
			t.Errorf("slots of %d bytes: %+v", slot, r)
		}
		want := fmt.Sprintf("the canaries of %d objects of the heap could not be read", r.Unread)
		if len(r.Limits) != 1 || !strings.HasPrefix(r.Limits[0].Text, want) || !strings.Contains(r.Limits[0].Text, "is not mapped") || !r.Limits[0].Severe {
			t.Errorf("got %+v", r.Limits)
		}
	}
}

func TestLargeUnreadable(t *testing.T) {
	b := agenttest.New()
	o := b.Large(8192, 200000, 24, agent.Call{}, false)
	b.Memory.Unmap(o-1, 1)
	if r := checkHeap(t, b, canary.HeapOptions{}); r.Unread != 1 || len(r.Limits) != 1 || r.Checked != 0 {
		t.Errorf("got %+v", r)
	}
}

// Unreadable memory without a canary does not count as unread.
func TestHeapUnreadableFreed(t *testing.T) {
	b := agenttest.New()
	first := b.Small(64, 1000)
	for i := range 200 {
		o := b.Alloc(first+evidence.Addr(64*i), 56, agent.Call{}, agent.APIMalloc)
		if i >= 50 {
			b.Release(o)
		}
	}
	b.Memory.Unmap((first+2*4096)&^4095, 4096)
	if r := checkHeap(t, b, canary.HeapOptions{}); r.Checked != 50 || r.Unread != 0 || len(r.Limits) != 0 {
		t.Errorf("got %+v", r)
	}
}

// Damage does not continue across an inaccessible page.
func TestGuardPageBetween(t *testing.T) {
	b := agenttest.New()
	const size = 131072 - 4096 - 16384 - 8
	large := b.Large(16384, size, 8, agent.Call{}, true)
	slot := b.Small(48, 10)
	b.Alloc(slot, 24, agent.Call{}, agent.APIMalloc)
	b.Memory.Write(large+size, []byte("all of it"[:8]))
	b.Memory.Write(slot-16, []byte("all of the guard"))
	r := checkHeap(t, b, canary.HeapOptions{})
	if len(r.Damages) != 2 {
		t.Fatalf("got %+v", r.Damages)
	}
	for _, d := range r.Damages {
		if !d.Damage.Reaches || d.Beyond != nil {
			t.Errorf("got %+v", d)
		}
	}
}

// Damages of neighbours are one only if the first extends to the second.
func TestHeapContinues(t *testing.T) {
	b, slot := row()
	b.Memory.Write(slot(1)+24, []byte("x"))
	b.Memory.Write(slot(2)+24, []byte(strings.Repeat("x", 24)))
	b.Memory.Write(slot(3)+24, []byte("x"))
	r := checkHeap(t, b, canary.HeapOptions{})
	if len(r.Damages) != 3 || r.Damages[0].Continues || r.Damages[1].Continues || !r.Damages[2].Continues {
		t.Errorf("got %+v", r.Damages)
	}
}

// An object with damage on both sides is one object.
func TestHeapBothSidesOfOne(t *testing.T) {
	b, slot := row()
	other := b.Alloc(b.Small(48, 10), 24, agent.Call{}, agent.APIMalloc)
	b.Memory.Write(slot(0)+24, []byte("x"))
	b.Memory.Write(other-1, []byte("x"))
	b.Memory.Write(other+24, []byte("x"))
	if r := checkHeap(t, b, canary.HeapOptions{}); len(r.Damages) != 3 || r.Further != 0 {
		t.Errorf("got %+v", r)
	}
	if r := checkHeap(t, b, canary.HeapOptions{Limit: 1, Workers: 1}); len(r.Damages) != 1 || r.Further != 1 {
		t.Errorf("got %+v", r)
	}
}

// A word that no agent writes is reported, not skipped.
func TestHeapImpossibleSize(t *testing.T) {
	for _, size := range []uint64{41, 48, 49, agent.SizeMask} {
		b, slot := row()
		b.SetWord(slot(1), b.Word(slot(1))&^agent.SizeMask|size)
		r := checkHeap(t, b, canary.HeapOptions{})
		if r.Unread != 1 || r.Checked != 4 || len(r.Limits) != 1 || !strings.Contains(r.Limits[0].Text, slot(1).String()) {
			t.Errorf("%d bytes: %+v", size, r)
		}
	}
}

// Checks of the same memory give the same result for any number of workers.
func TestHeapDeterministic(t *testing.T) {
	b := agenttest.New()
	for n := range 8 {
		first := b.Small(32<<n, 100)
		for i := range 100 {
			o := b.Alloc(first+evidence.Addr((32<<n)*i), 17, agent.Call{}, agent.APIMalloc)
			if (i*7+n)%13 == 0 {
				b.Memory.Write(o+evidence.Addr(17+i%8), []byte(strings.Repeat("q", 1+i)))
			}
		}
	}
	want := checkHeap(t, b, canary.HeapOptions{Workers: 1})
	if len(want.Damages) < 50 {
		t.Fatalf("%d damages", len(want.Damages))
	}
	for range 5 {
		if got := checkHeap(t, b, canary.HeapOptions{Workers: 4}); !reflect.DeepEqual(got, want) {
			t.Fatal("results differ")
		}
	}
}
