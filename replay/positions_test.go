package replay

import (
	"slices"
	"testing"
)

func TestPositions(t *testing.T) {
	for total, want := range map[uint64][]uint64{
		0: nil, 1: nil, 2: {1}, 10: {2, 4, 6, 8, 9}, 256: {51, 102, 128, 153, 192, 204, 224, 240, 248, 252, 254, 255}} {
		got := positionsFor(total)
		if !slices.Equal(got, want) {
			t.Errorf("of %d events: %v, want %v", total, got, want)
		}
	}
	if got := positionsFor(1 << 40); len(got) != mostEven+mostNear || got[0] < 1<<37 || got[len(got)-1] != 1<<40-1 {
		t.Errorf("%v", got)
	}
}
