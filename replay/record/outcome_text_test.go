package record

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Only the signal that the kernel kills with indicates a lack of memory.
func TestMemoryWords(t *testing.T) {
	r := &run{memoryKills: memoryKills()}
	for _, o := range []Outcome{{Kind: OutcomeSignal, Signal: int(unix.SIGKILL)}, {Kind: OutcomeExit, Status: 137}, {Kind: OutcomeSignal, Signal: int(unix.SIGSEGV)}} {
		before := memoryKills() - r.memoryKills // of other processes
		if n := r.killedMeanwhile(&o); n > before && o.Signal != int(unix.SIGKILL) {
			t.Errorf("%+v: %d", o, n)
		}
	}
	for n, want := range map[uint64]string{0: "", 1: "killed a process", 3: "killed 3 processes"} {
		o := Outcome{MemoryKills: n}
		if got := o.MemoryWords(); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%d: %q", n, got)
		}
	}
}
