package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPipe: a pipe is read to its end. The reader waits no longer than the context for a writer
// that is missing or silent.
func TestPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	lonely, err := openPipe(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	defer lonely.Close()
	ended := make(chan error)
	go func() {
		_, err := io.ReadAll(lonely)
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("without a writer: %v", err)
	}

	r, err := openPipe(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() { ended <- os.WriteFile(name, []byte(strings.Repeat("text", 50_000)), 0) }()
	if text, err := io.ReadAll(r); err != nil || len(text) != 200_000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}

	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	ctx, cancel = context.WithCancel(t.Context())
	silent := newPipeReader(ctx, from)
	defer silent.Close()
	go func() {
		_, err := io.ReadAll(silent)
		ended <- err
	}()
	to.Write([]byte("a"))
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("of a silent writer: %v", err)
	}
}

func TestPipeOfFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := openPipe(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if text, err := io.ReadAll(r); string(text) != "text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	cancel()
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := openPipe(ctx, name+"-missing"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
