package jemalloc

import (
	"slices"
	"testing"
)

// TestClasses: the classes of both alignments, with the counts of sc.h (SC_NBINS, SC_NSIZES).
func TestClasses(t *testing.T) {
	for _, x := range []struct {
		quantum, bins, none int
		first               []uint64
	}{
		{4, 36, 232, []uint64{8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}},
		{3, 39, 235, []uint64{8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192}},
	} {
		c := classesOf(x.quantum)
		if c.bins != x.bins || c.none != x.none || !slices.Equal(c.sizes[:len(x.first)], x.first) || c.sizes[c.bins-1] != 14336 || c.sizes[c.bins] != 16384 {
			t.Errorf("quantum %d: %d bins, none is %d, %v", x.quantum, c.bins, c.none, c.sizes[:c.bins+1])
		}
	}
}
