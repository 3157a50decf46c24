package agent

import (
	"context"
	"errors"
)

// Library returns the path of libdiagnose.so, for LD_PRELOAD. It is built at
// the first use and cached. Where there is neither a compiler nor a library
// that a release build brought, the error is an *UnsupportedError.
func Library(ctx context.Context) (string, error) {
	return "", errors.New("the agent is not built yet")
}

// UnsupportedError says what this machine lacks.
type UnsupportedError struct{ What string }

func (e *UnsupportedError) Error() string { return "not supported here: " + e.What }
