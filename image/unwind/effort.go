package unwind

import (
	"errors"
	"sync/atomic"
)

const (
	// maxEffort bounds the bytes of call frame instructions, of expressions and
	// of prologues that an unwinder interprets in all: some seconds' work. Real
	// programs come to a few megabytes, for what was learnt of a pc is kept; a
	// stack made of a million different return addresses could ask for hours.
	maxEffort = 256 << 20
	// expressionCost is what evaluating an expression costs beside its bytes.
	expressionCost = 8
)

// effort counts the bytes interpreted. It is safe for concurrent use.
type effort struct{ bytes atomic.Int64 }

var errEffort = errors.New("the stacks take more work than any real program's")

// spend adds to the effort; the error says that it has become too much. A nil
// effort is not counted.
func (e *effort) spend(bytes int) error {
	if e != nil && e.bytes.Add(int64(bytes)) > maxEffort {
		return errEffort
	}
	return nil
}
