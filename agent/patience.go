package agent

import (
	"errors"
	"sync/atomic"
)

// patience ends a walk whose reads do nothing but fail: windows may claim much
// that is not there. It is shared by the workers of a walk.
type patience struct {
	failed atomic.Int32 // in a row
}

const maxFailures = 1000

var errGivenUp = errors.New("agent: given up after a thousand reads in a row that failed")

// read is source.read while there is patience left.
func (p *patience) read(s source, what string, addr uint64, data []byte) error {
	if p.failed.Load() >= maxFailures {
		return errGivenUp
	}
	err := s.read(what, addr, data)
	if err != nil {
		p.failed.Add(1)
	} else if p.failed.Load() != 0 {
		p.failed.Store(0)
	}
	return err
}
