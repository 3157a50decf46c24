package ptrace

import (
	"syscall"
	"testing"
)

func TestResultError(t *testing.T) {
	for result, want := range map[int64]error{
		0: nil, 5: nil, -1: syscall.EPERM, -4095: syscall.Errno(4095), -4096: nil, -1 << 63: nil,
	} {
		if got := ResultError(result); got != want {
			t.Errorf("%d: %v, want %v", result, got, want)
		}
	}
}
