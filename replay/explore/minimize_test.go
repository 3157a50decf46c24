package explore

import (
	"slices"
	"testing"

	"diagnose/replay/record"
)

// Each element of the result is needed, and few calls are made.
func TestReduce(t *testing.T) {
	var list []record.Decision
	for i := range 200 {
		list = append(list, record.Decision{Thread: 1, Step: uint64(i)})
	}
	for _, needed := range [][]int{{}, {0}, {199}, {3, 4}, {0, 100, 199}, {10, 20, 30, 40, 50}} {
		asked := 0
		fails := func(try []record.Decision) (bool, error) {
			asked++
			for _, n := range needed {
				if !slices.Contains(try, list[n]) {
					return false, nil
				}
			}
			return true, nil
		}
		got, err := reduce(list, fails)
		if err != nil {
			t.Fatal(err)
		}
		var want []record.Decision
		for _, n := range needed {
			want = append(want, list[n])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v needed, got %v", needed, got)
		}
		if asked > 20+60*len(needed) {
			t.Errorf("%v needed: asked %d times", needed, asked)
		}
	}
}
