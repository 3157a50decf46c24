package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-isatty"

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
	fmt.Fprintf(p.file, "\r\x1b[Kdiagnose: %s", reports.Clean(text))
}

func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.file, "\r\x1b[K")
	}
	p.shown = false
}
