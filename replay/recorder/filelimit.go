package recorder

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// fileLimitText describes the limit on the size of files of a process (setrlimit(2)).
func fileLimitText(bytes uint64) string {
	return fmt.Sprintf("the limit on the size of files is %d bytes (RLIMIT_FSIZE, which 'ulimit -f' shows in KiB and sets)", bytes)
}

// withFileLimit adds the limit to the error "file too large".
func withFileLimit(err error) error {
	var limit unix.Rlimit
	if !errors.Is(err, unix.EFBIG) || unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return err
	}
	return fmt.Errorf("%w: %s", err, fileLimitText(limit.Cur))
}
