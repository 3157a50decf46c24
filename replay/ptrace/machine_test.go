package ptrace

import (
	"errors"
	"testing"
)

// TestDebugRegistersFire: a machine has debug registers, or it is known that it has none.
func TestDebugRegistersFire(t *testing.T) {
	if err := tryDebugRegisters(); err != nil && !errors.Is(err, ErrNoDebugRegisters) {
		t.Fatal(err)
	}
}

// TestCounterTraps: the reads trap, or it is known that they do not.
func TestCounterTraps(t *testing.T) {
	if err := CounterTraps(); err != nil && !errors.Is(err, ErrCounterDoesNotTrap) {
		t.Fatal(err)
	}
}
