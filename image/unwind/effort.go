package unwind

import (
	"errors"
	"sync/atomic"
)

const (
	// maxEffort bounds the bytes of call frame instructions, of expressions and
	// of prologues that an unwinder interprets in total: a few seconds of work.
	// Real programs need a few megabytes, because the results for a pc are
	// cached. A hostile stack of a million different return addresses could
	// take hours.
	maxEffort = 256 << 20
	// expressionCost is the fixed cost of evaluating an expression, added to
	// its bytes.
	expressionCost = 8
)

// effort counts the bytes interpreted. It is safe for concurrent use.
type effort struct{ bytes atomic.Int64 }

var errEffort = errors.New("the stacks take more work than any real program's")

// spend adds to the effort; the error says that the bound is exceeded. A nil
// effort counts nothing.
func (e *effort) spend(bytes int) error {
	if e != nil && e.bytes.Add(int64(bytes)) > maxEffort {
		return errEffort
	}
	return nil
}
