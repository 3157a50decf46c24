// Package limits says which limits of the machine ended a recording.
package limits

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// FileSizeText describes the limit on the size of files of a process (setrlimit(2)).
func FileSizeText(bytes uint64) string {
	return fmt.Sprintf("the limit on the size of files is %d bytes (RLIMIT_FSIZE, which 'ulimit -f' shows in KiB and sets)", bytes)
}

// WithFileSize adds the limit to the error "file too large".
func WithFileSize(err error) error {
	var limit unix.Rlimit
	if !errors.Is(err, unix.EFBIG) || unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return err
	}
	return fmt.Errorf("%w: %s", err, FileSizeText(limit.Cur))
}
