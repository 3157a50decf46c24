package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"

	"diagnose/reports"
)

// progressDelay keeps quick work silent.
const progressDelay = 300 * time.Millisecond

// progress is one line on a terminal that says what takes long. It is silent if there is no
// terminal.
type progress struct {
	file  *os.File
	start time.Time

	mu    sync.Mutex
	shown bool
}

func newProgress(file *os.File) *progress {
	if !isatty.IsTerminal(file.Fd()) {
		file = nil
	}
	return &progress{file: file, start: time.Now()}
}

func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil || time.Since(p.start) < progressDelay {
		return
	}
	p.shown = true
	fmt.Fprintf(p.file, "\r\x1b[K%s", p.cut("diagnose: "+reports.Message(text)))
}

// cut shortens the line to one row of the terminal: only one row can be cleared.
func (p *progress) cut(text string) string {
	size, err := unix.IoctlGetWinsize(int(p.file.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col < 8 {
		return text
	}
	if runes := []rune(text); len(runes) >= int(size.Col) {
		return string(runes[:size.Col-4]) + "..."
	}
	return text
}

// plainDelay is how long unexpected work runs before a line reports it, if there is no terminal.
const plainDelay = time.Second

// unexpected is the progress of work that is done at a first use. On a terminal it is a line like
// that of progress. Otherwise it is one line for all, if the work takes a second.
type unexpected struct {
	*progress
	plain *os.File
	mutex sync.Mutex
}

func newUnexpected(file *os.File) *unexpected {
	u := &unexpected{progress: newProgress(file)}
	if u.progress.file == nil {
		u.plain = file
	}
	return u
}

// step shows the progress on a terminal, and writes the task to a log once.
func (u *unexpected) step(far, what string) {
	u.say(far)
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.plain != nil && time.Since(u.start) >= plainDelay {
		fmt.Fprintln(u.plain, "diagnose:", reports.Message(what))
		u.plain = nil
	}
}

// during shows a text while work runs.
func (u *unexpected) during(text string, work func()) {
	ended := make(chan struct{})
	var said sync.WaitGroup
	said.Go(func() {
		tick := time.NewTicker(progressDelay)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				u.step(text, text)
			case <-ended:
				return
			}
		}
	})
	work()
	close(ended)
	said.Wait()
	u.clear()
}

func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.file, "\r\x1b[K")
	}
	p.shown = false
}
