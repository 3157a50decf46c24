package ptrace

import (
	"errors"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMemoryOfEnded: of a process that has ended there is no memory, which is another error than an address where it has none.
func TestMemoryOfEnded(t *testing.T) {
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	m, err := OpenMemory(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var word [8]byte
	if _, err := m.ReadAt(word[:], 8); err == nil || errors.Is(err, unix.ESRCH) {
		t.Errorf("at an address that is not mapped: %v", err)
	}
	c.Process.Kill()
	if err := unix.Waitid(unix.P_PID, c.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := m.ReadAt(word[:], 8); !errors.Is(err, unix.ESRCH) {
		t.Errorf("reading after the end: %v", err)
	}
	if _, err := m.WriteAt(word[:], 8); !errors.Is(err, unix.ESRCH) {
		t.Errorf("writing after the end: %v", err)
	}
}
