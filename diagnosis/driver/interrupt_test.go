package driver_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/diagnosis/driver"
)

// An analysis that waits for its input ends with its context: here for a pipe without a writer.
func TestInterrupt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "core")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	done := make(chan error, 1)
	go func() {
		_, err := driver.Crash(ctx, driver.Request{Core: path})
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("continues after the interrupt")
	}
	// Release the reader that still waits.
	if f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
		f.Close()
	}
}
