package main

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pipeReader reads a file or pipe until a context is done. Read then returns the context's cause.
// Without it, a pipe that no data arrives in would block for ever, and so would opening one that
// has no writer.
type pipeReader struct {
	ctx  context.Context
	file *os.File
	// waits is set if the data may take long to arrive.
	waits bool
}

// openPipe opens a file or a named pipe. It does not wait for the pipe's writer; Read does.
func openPipe(ctx context.Context, path string) (*pipeReader, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return newPipeReader(ctx, f), nil
}

// newPipeReader returns a reader of an open file.
func newPipeReader(ctx context.Context, f *os.File) *pipeReader {
	info, err := f.Stat()
	return &pipeReader{ctx, f, err != nil || !info.Mode().IsRegular()}
}

// Close closes the file.
func (r *pipeReader) Close() error { return r.file.Close() }

func (r *pipeReader) Read(p []byte) (int, error) {
	if err := r.wait(); err != nil {
		return 0, err
	}
	return r.file.Read(p)
}

// look is the interval of checks of the context while no data arrives.
const look = 100 * time.Millisecond

// wait returns when there is something to read, or at the end. A pipe without a writer has no end
// until a writer has opened and closed it (pipe(7), fifo(7)).
func (r *pipeReader) wait() error {
	for {
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		if !r.waits {
			return nil
		}
		fds := []unix.PollFd{{Fd: int32(r.file.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(look.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return os.NewSyscallError("poll", err)
		case n > 0:
			return nil
		}
	}
}
