package limits

import (
	"strings"
	"testing"
)

func TestReadMemoryKills(t *testing.T) {
	for text, want := range map[string]uint64{"nr_free_pages 5\noom_kill 7\nnuma_hit 1\n": 7, "oom_killer 3\n": 0, "oom_kill x\n": 0, "": 0} {
		if got := readMemoryKills(strings.NewReader(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
