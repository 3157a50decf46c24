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

func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.file, "\r\x1b[K")
	}
	p.shown = false
}
