package ptrace

import (
	"errors"
	"os/exec"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOnThreadHasNoChildren: an OnThread must not wait for processes that others started.
func TestOnThreadHasNoChildren(t *testing.T) {
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			for range 5 {
				if out, err := exec.Command("/bin/true").CombinedOutput(); err != nil {
					t.Errorf("another child: %v %s", err, out)
				}
			}
		})
		err := OnThread(func() error {
			stop, found, err := Poll()
			if !errors.Is(err, unix.ECHILD) {
				t.Errorf("a new thread has a child: %v, %v, %v", stop, found, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	all.Wait()
}
