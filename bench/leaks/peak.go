package main

import (
	"os"
	"syscall"
)

// peak is the most memory that an ended process had, in MB, with the pages of the core.
func peak(p *os.ProcessState) int64 {
	if u, ok := p.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss >> 10
	}
	return 0
}
