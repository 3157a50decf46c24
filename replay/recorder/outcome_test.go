package recorder

import (
	"testing"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/replay/record"
)

// TestInRecorder: a failed access is the recorder's if it is to the engine's memory, and not to a stack or to what the program has.
func TestInRecorder(t *testing.T) {
	for at, want := range map[evidence.Addr]bool{
		0:                      false,
		agent.EngineBase - 1:   false,
		agent.EngineBase:       true,
		agent.EngineImage + 8:  true,
		agent.EngineStacks - 1: true,
		agent.EngineStacks:     false,
		0x7ffff7fb7000:         false,
	} {
		if got := inRecorder(&record.Outcome{Kind: record.OutcomeSignal, Signal: 11, FaultAddr: &at}); got != want {
			t.Errorf("at %v: %v, want %v", at, got, want)
		}
	}
	if inRecorder(&record.Outcome{Kind: record.OutcomeSignal, Signal: 6}) {
		t.Error("a signal without an address is not the recorder's")
	}
}
