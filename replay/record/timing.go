package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"diagnose/internal/privatefile"
	"diagnose/replay/record/eventlog"
)

// TimingName is the file of a recording that says how it is replayed. It exists if the first
// choice failed in a replay.
const TimingName = "timing"

// Timing says when a replay runs the code between two events of a thread.
type Timing string

// The timings.
const (
	TimingEager Timing = "eager" // right after the first event
	TimingLazy  Timing = "lazy"  // right before the second, or when another thread needs it
)

// Timing returns the timing that a replay or a search stored; empty: none did.
func (r *Recording) Timing() (Timing, error) {
	if found, err := r.Found(); found != nil || err != nil {
		return found.timing(), err
	}
	const longest = 16
	text, err := r.readSmall(TimingName, longest)
	if text == nil || err != nil {
		return "", err
	}
	switch t := Timing(text); t {
	case TimingEager + "\n", TimingLazy + "\n":
		return t[:len(t)-1], nil
	}
	return "", &eventlog.CorruptError{File: TimingName, Offset: 0, What: fmt.Sprintf("says %q", text)}
}

// SetTiming stores the timing that replays the recording.
func (r *Recording) SetTiming(t Timing) error {
	return writeWhole(r.Dir, TimingName, []byte(string(t)+"\n"))
}

// Found returns the result of a search that reached the recorded end; nil: none did.
func (r *Recording) Found() (*Found, error) {
	f, err := r.Searched()
	if f != nil && f.Partial {
		return nil, err
	}
	return f, err
}

// Searched returns the result of a search, whether it reached the recorded end or not; nil:
// there is none.
func (r *Recording) Searched() (*Found, error) {
	data, err := r.readSmall(ScheduleName, mostFound+1)
	switch {
	case data == nil || err != nil:
		return nil, err
	case len(data) > mostFound:
		return nil, foundError(fmt.Sprintf("is larger than %d MiB", mostFound>>20))
	}
	return DecodeFound(data)
}

// SetFound stores how the recording is replayed. It sets the version.
func (r *Recording) SetFound(f *Found) error {
	f.Version = FoundVersion
	if err := f.Check(); err != nil {
		return err
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return writeWhole(r.Dir, ScheduleName, append(data, '\n'))
}

// readSmall reads up to limit bytes of a file; nil without an error: there is none.
func (r *Recording) readSmall(name string, limit int64) ([]byte, error) {
	f, err := r.File(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil, &eventlog.InputError{Err: err}
	}
	return data, nil
}

// writeWhole writes a file whole or not at all, and replaces an earlier one.
func writeWhole(dir, name string, data []byte) error {
	if err := privatefile.Write(filepath.Join(dir, name), data); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}
