package replay

import "diagnose/evidence"

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
