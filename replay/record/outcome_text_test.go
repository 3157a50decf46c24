package record

import (
	"strings"
	"testing"
)

func TestMemoryWords(t *testing.T) {
	for n, want := range map[uint64]string{0: "", 1: "killed a process", 3: "killed 3 processes"} {
		o := Outcome{MemoryKills: n}
		if got := o.MemoryWords(); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%d: %q", n, got)
		}
	}
}
