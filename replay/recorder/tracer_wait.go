package recorder

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
)

// leaderInterval is how often to look for a first thread that is not reported.
const leaderInterval = time.Millisecond

// wait waits for the next stop. If a process's first thread ends by itself, that is reported
// only after the other threads. If it ends when it was asked to stop, nothing is reported. So
// wait also checks processes that are about to end.
func (t *tracer) wait() (ptrace.Stop, error) {
	for {
		ending := t.tracees.ending()
		if len(ending) == 0 {
			return ptrace.Wait()
		}
		stop, found, err := ptrace.Poll()
		if found || err != nil {
			return stop, err
		}
		time.Sleep(leaderInterval)
		for _, p := range ending {
			if leader := p.threads[p.pid]; leader == nil || leader.stopped || !gone(p.pid) {
				continue
			}
			// ESRCH: killed while its core was made; its end is reported next.
			if err := t.maybeCore(p); err != nil && !errors.Is(err, unix.ESRCH) {
				return ptrace.Stop{}, err
			}
		}
	}
}
