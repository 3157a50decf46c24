package sites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/internal/signalsets"
	"diagnose/replay/record"
)

// mappedCode is a mapping of code in a process, and its object.
type mappedCode struct {
	mapping  *record.Mapping
	path     string
	identity fileIdentity
	code     *objectCode // nil if there is an err
	err      error
}

// Analysis is the progress of the search for system calls in a program's object files. The
// program waits for it.
type Analysis struct {
	// Done of Total files are searched; at the end all are.
	Done, Total int
	// Path is the file that was finished last.
	Path record.Text
}

// Ended reports whether the search is complete.
func (a Analysis) Ended() bool { return a.Done == a.Total }

// errDying: the process has received a signal that ends it as soon as it runs.
var errDying = errors.New("it was ended by a signal while its code was looked through")

// codeOf searches the code of a process, without the engine's library. tell, unless nil, is
// called with the progress of a search that takes long.
func codeOf(tid int, list []record.Mapping, library record.File, tell func(Analysis)) ([]*mappedCode, error) {
	var files, unknown []*mappedCode
	for i := range list {
		m := &list[i]
		if m.Permissions[2] != 'x' || m.Path == "" || m.Path[0] != '/' || isFile(m, library) {
			continue
		}
		c := newMappedCode(tid, m)
		files = append(files, c)
		if c.err != nil {
			continue
		}
		if c.code = knownSites.lookup(c.identity); c.code == nil {
			unknown = append(unknown, c)
		}
	}
	if len(unknown) == 0 {
		return files, nil
	}
	return files, analyse(tid, unknown, tell)
}

// newMappedCode finds the file of a mapping: at its path or, if another file is there now, or
// in another mount name space, through the kernel.
func newMappedCode(tid int, m *record.Mapping) *mappedCode {
	c := &mappedCode{mapping: m, path: string(m.Path)}
	c.identity, c.err = identityOf(c.path)
	if c.err == nil && (m.File == nil || m.File.Inode == c.identity.Inode) {
		return c
	}
	link := fmt.Sprintf("/proc/%d/map_files/%x-%x", tid, uint64(m.Start), uint64(m.End))
	if identity, err := identityOf(link); err == nil {
		c.path, c.identity, c.err = link, identity, nil
	}
	return c
}

// analyse searches files, on all processors. The error is errDying if the process that waits
// for it is about to end.
func analyse(tid int, files []*mappedCode, tell func(Analysis)) error {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // whole files are read
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	work, done := make(chan *mappedCode), make(chan *mappedCode)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		workers.Go(func() {
			for c := range work {
				c.code, c.err = knownSites.analyse(ctx, c.path, c.identity)
				done <- c
			}
		})
	}
	go func() {
		for _, c := range files {
			work <- c
		}
		close(work)
		workers.Wait()
		close(done)
	}()
	return awaitAnalysis(tid, len(files), done, stop, tell)
}

// awaitAnalysis receives the files as they are done.
func awaitAnalysis(tid, total int, done <-chan *mappedCode, stop func(), tell func(Analysis)) error {
	const interval, patience = 50 * time.Millisecond, 300 * time.Millisecond
	tick := time.NewTicker(interval)
	defer tick.Stop()
	start, told, dying := time.Now(), false, false
	a := Analysis{Total: total}
	defer func() {
		if told {
			tell(Analysis{Done: total, Total: total})
		}
	}()
	for {
		select {
		case c, open := <-done:
			if !open && dying {
				return errDying
			}
			if !open {
				return nil
			}
			a.Done++
			a.Path = record.Text(c.path)
		case <-tick.C:
			if !dying && endsAtOnce(tid) {
				dying = true
				stop()
			}
			if tell != nil && time.Since(start) > patience && !a.Ended() {
				told = true
				tell(a)
			}
		}
	}
}

// endsAtOnce reports whether a stopped process has ended, or has a pending signal that ends it
// and that it neither blocks, ignores nor handles (signal(7)).
func endsAtOnce(tid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return true
	}
	if _, state, _ := strings.Cut(string(text), "\nState:\t"); strings.HasPrefix(state, "Z") {
		return true
	}
	s, err := signalsets.Parse(text)
	harmless := signalsets.Of(unix.SIGCHLD, unix.SIGURG, unix.SIGWINCH, unix.SIGCONT, unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	return err == nil && (s.Pending|s.SharedPending)&^(s.Blocked|s.Ignored|s.Caught|harmless) != 0
}
