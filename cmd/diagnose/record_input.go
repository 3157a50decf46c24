package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// sameInput gives each run of a program the same standard input.
type sameInput struct {
	// start is where the first run began to read a file.
	start int64
	// lost says that the input is a pipe or a terminal, which cannot be read twice.
	lost bool
	told bool
}

func newSameInput() *sameInput {
	start, err := unix.Seek(unix.Stdin, 0, unix.SEEK_CUR)
	return &sameInput{start: start, lost: err != nil}
}

// again comes before each run but the first.
func (i *sameInput) again() error {
	if i.lost {
		if !i.told && drained(unix.Stdin) {
			i.told = true
			say("warning: standard input is a pipe, of which only the first run had the content; give a file instead (< FILE)")
		}
		return nil
	}
	if _, err := unix.Seek(unix.Stdin, i.start, unix.SEEK_SET); err != nil {
		return fmt.Errorf("going back in standard input for the next run: %w", os.NewSyscallError("lseek", err))
	}
	return nil
}

// drained reports whether a pipe has no writer any more, and all of it was read.
func drained(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n == 1 && p[0].Revents&unix.POLLIN == 0 && p[0].Revents&unix.POLLHUP != 0
}
