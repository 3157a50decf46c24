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

// progress is one line on a terminal that says what takes long. Elsewhere it
// says nothing.
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
	fmt.Fprintf(p.file, "\r\x1b[K%s", p.cut("diagnose: "+reports.Clean(text)))
}

// cut keeps the line to one row of the terminal, for only that can be cleared.
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

// plainDelay is how long unexpected work runs before a line says so, where there is no terminal.
const plainDelay = time.Second

// unexpected is progress of work that is done at a first use. On a terminal it is a line
// as progress is; elsewhere it is one line for all, if it takes a second.
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

// step says how far the work is, and to a log what is done.
func (u *unexpected) step(far, what string) {
	u.say(far)
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.plain != nil && time.Since(u.start) >= plainDelay {
		fmt.Fprintln(u.plain, "diagnose:", reports.Clean(what))
		u.plain = nil
	}
}

// during says what is done while work runs.
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
