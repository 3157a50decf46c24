package recorder

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/replay/record"
)

func TestReadMemoryKills(t *testing.T) {
	for text, want := range map[string]uint64{"nr_free_pages 5\noom_kill 7\nnuma_hit 1\n": 7, "oom_killer 3\n": 0, "oom_kill x\n": 0, "": 0} {
		if got := readMemoryKills(strings.NewReader(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// Only the signal that the kernel kills with indicates a lack of memory.
func TestKilledMeanwhile(t *testing.T) {
	r := &run{memoryKills: memoryKills()}
	for _, o := range []record.Outcome{{Kind: record.OutcomeSignal, Signal: int(unix.SIGKILL)}, {Kind: record.OutcomeExit, Status: 137}, {Kind: record.OutcomeSignal, Signal: int(unix.SIGSEGV)}} {
		before := memoryKills() - r.memoryKills // of other processes
		if n := r.killedMeanwhile(&o); n > before && o.Signal != int(unix.SIGKILL) {
			t.Errorf("%+v: %d", o, n)
		}
	}
}
