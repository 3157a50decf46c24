package record

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockDirectory marks a recording as being written. The kernel removes the mark when the
// recorder ends, however that happens. Without locks there is no mark.
func lockDirectory(dir string) *os.File {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil
	}
	return f
}

// Live reports whether the recording is still being written. Then the logs of its threads are
// not of one moment.
func (r *Recording) Live() bool {
	if r.Manifest.Outcome.Kind != OutcomeRunning {
		return false
	}
	f, err := os.Open(r.Dir)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}
