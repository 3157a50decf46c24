package replay

import (
	"golang.org/x/sys/unix"

	"diagnose/evidence"
)

// Write changes the memory of a stopped process.
func Write(s *Stopped, addr evidence.Addr, p []byte) error {
	_, err := s.c.Memory.WriteAt(p, int64(addr))
	return err
}

// Looks returns how often a thread that computed without an event was stepped.
func Looks(r *Result) int { return r.looks }

// WithAtEnd returns the request with another AtEnd.
func WithAtEnd(r Request, do func(*Stopped) error) Request { return atEnd{r, do} }

type atEnd struct {
	Request
	do func(*Stopped) error
}

func (a atEnd) parts() parts {
	p := a.Request.parts()
	p.AtEnd = a.do
	return p
}

// EndProcesses ends the processes of the checkpoints, which are kept.
func (k *Kept) EndProcesses() error {
	for _, x := range k.list {
		if err := unix.Kill(x.copied.PID(), unix.SIGKILL); err != nil {
			return err
		}
	}
	return nil
}
