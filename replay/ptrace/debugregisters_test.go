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
