package record

import (
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
)

// leaderInterval is how often is looked for a first thread that is not reported.
const leaderInterval = time.Millisecond

// wait waits for the next stop. A process's first thread that leaves by itself
// is reported behind the others only; if it does so when it was asked to stop,
// nothing comes of that. So processes at their end are looked at meanwhile.
func (t *tracer) wait() (ptrace.Stop, error) {
	for {
		ending := t.ending()
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
			// ESRCH: killed while its core was made, and its end is reported next.
			if err := t.maybeCore(p); err != nil && !errors.Is(err, unix.ESRCH) {
				return ptrace.Stop{}, err
			}
		}
	}
}

// ending are the processes whose threads are being stopped for their core, the
// first thread among them.
func (t *tracer) ending() []*process {
	return slices.DeleteFunc(slices.Collect(maps.Values(t.processes)), func(p *process) bool {
		leader := p.threads[p.pid]
		return p.ending == nil || p.ending.done || leader == nil || leader.stopped
	})
}
