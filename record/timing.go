package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// TimingName is the file of a recording that says how it is replayed. It is
// there if a replay found out that the first choice does not do.
const TimingName = "timing"

// Timing says when a replay runs the code between two events of a thread.
type Timing string

// The timings.
const (
	TimingEager Timing = "eager" // right behind the first event
	TimingLazy  Timing = "lazy"  // right before the second, or when another thread needs it
)

// Timing is what a replay wrote down; empty: none did.
func (r *Recording) Timing() (Timing, error) {
	f, err := r.File(TimingName)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	const longest = 16
	text, err := io.ReadAll(io.LimitReader(f, longest))
	if err != nil {
		return "", fmt.Errorf("record: %w", err)
	}
	switch t := Timing(text); t {
	case TimingEager + "\n", TimingLazy + "\n":
		return t[:len(t)-1], nil
	}
	return "", &CorruptError{TimingName, 0, fmt.Sprintf("says %q", text)}
}

// SetTiming writes down which timing replays the recording.
func (r *Recording) SetTiming(t Timing) error {
	f, err := os.CreateTemp(r.Dir, "."+TimingName+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(string(t) + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if err := os.Rename(f.Name(), filepath.Join(r.Dir, TimingName)); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}
