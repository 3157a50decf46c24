package limit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// watcher ends a process whose threads all sleep for too long. A thread that a busy machine
// does not let run is not asleep.
type watcher struct {
	pid    int
	limit  time.Duration
	done   chan struct{}
	group  sync.WaitGroup
	killed bool
}

const period = 100 * time.Millisecond

func (w *watcher) start() {
	if w.limit > 0 {
		w.group.Go(w.watch)
	}
}

// stop reports whether the process was ended.
func (w *watcher) stop() bool {
	close(w.done)
	w.group.Wait()
	return w.killed
}

func (w *watcher) watch() {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	last, since := "", time.Now()
	for {
		select {
		case <-w.done:
			return
		case <-ticker.C:
		}
		now, sleeping := w.state()
		if !sleeping || now != last {
			last, since = now, time.Now()
			continue
		}
		if time.Since(since) >= w.limit {
			w.killed = syscall.Kill(-w.pid, syscall.SIGKILL) == nil
			return
		}
	}
}

// state is what the threads have used of the processor, and whether all of them sleep.
func (w *watcher) state() (used string, sleeping bool) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", w.pid))
	if err != nil || len(files) == 0 {
		return "", false
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		// The name of a program, in parentheses, may have spaces.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if err != nil || len(fields) < 13 || fields[0] != "S" {
			return "", false
		}
		used += fields[11] + " " + fields[12] + " "
	}
	return used, true
}
