package driver

import (
	"testing"

	"diagnose/evidence"
)

// Arrivals are counted for each thread, event and address, whatever came between.
func TestMomentsCountArrivals(t *testing.T) {
	counts := moments{}
	for i, x := range []struct {
		thread  uint32
		ordinal uint64
		pc      evidence.Addr
		want    uint64
	}{
		{1, 4, 0x10, 1}, {1, 4, 0x20, 1}, {1, 4, 0x10, 2}, {1, 4, 0x20, 2}, {2, 4, 0x20, 1}, {1, 4, 0x20, 3}, {1, 5, 0x20, 1},
	} {
		got := counts.arrive(evidence.Moment{Thread: x.thread, Ordinal: x.ordinal}, x.pc)
		if want := (evidence.Moment{Thread: x.thread, Ordinal: x.ordinal, PC: x.pc, Count: x.want}); got != want {
			t.Errorf("arrival %d is %v, want %v", i, got, want)
		}
	}
}
