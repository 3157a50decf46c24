package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// progress tells a person what happens. Where standard error is no terminal it is silent.
type progress struct {
	file     *os.File
	terminal bool
}

func newProgress(file *os.File) *progress {
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return &progress{file, err == nil || os.Getenv("TRUTH_PROGRESS") != ""}
}

func (p *progress) note(format string, args ...any) {
	if p.terminal {
		fmt.Fprintf(p.file, format+"\n", args...)
	}
}
