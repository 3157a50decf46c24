package record

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

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
