package explore

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"diagnose/internal/privatefile"
	"diagnose/replay/record"
)

// huntState is the state of a hunt that stopped without a failure.
type huntState struct {
	Version int    `json:"version"`
	Next    uint64 `json:"next"`
	Length  uint64 `json:"length"`
}

// mostState is the maximum size of the file in bytes.
const mostState = 4096

// statePath is the file for a hunt of this program, as it is built now, with these arguments
// and this strategy.
func (o *HuntOptions) statePath() (string, error) {
	o.setDefaults()
	info, err := os.Stat(o.Record.Path)
	if err != nil {
		return "", fmt.Errorf("explore: %w", err)
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d %s %d %v", o.Record.Path, o.Record.Args, info.Size(), info.ModTime().UnixNano(), o.Strategy, o.Depth,
		o.NoGlobals))
	return filepath.Join(o.Record.Output, ".hunt-"+hex.EncodeToString(key[:8])), nil
}

// Resume makes a hunt continue where an earlier one of the same program and strategy stopped.
// Without an earlier one it starts from the beginning.
func (o *HuntOptions) Resume() error {
	path, err := o.statePath()
	if err != nil {
		return err
	}
	data, err := readState(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var s huntState
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err == nil && s.Version != 1 {
		err = fmt.Errorf("version %d", s.Version)
	}
	if err != nil {
		return fmt.Errorf("explore: where the last hunt stopped: %s: %w", path, err)
	}
	o.First = max(s.Next, o.First)
	if o.Length == 0 {
		o.Length = s.Length
	}
	return nil
}

// readState reads the file if it is a regular file.
func readState(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("it is no regular file"), err)
	}
	data, err := io.ReadAll(io.LimitReader(f, mostState+1))
	if err == nil && len(data) > mostState {
		err = fmt.Errorf("it is larger than %d bytes", mostState)
	}
	return data, err
}

// Stopped stores where a hunt without a failure stopped. After a hunt with a failure it removes
// the state.
func (o *HuntOptions) Stopped(r *HuntResult) error {
	path, err := o.statePath()
	if err != nil {
		return err
	}
	if r.Found {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("explore: %w", err)
		}
		return nil
	}
	data, err := json.Marshal(huntState{Version: 1, Next: r.Next, Length: r.Length})
	if err == nil {
		err = os.MkdirAll(o.Record.Output, 0o700)
	}
	if err == nil {
		err = privatefile.Write(path, data)
	}
	if err != nil {
		return fmt.Errorf("explore: where the hunt stopped: %w", err)
	}
	return nil
}

// Strategies returns the strategies of a hunt, for a command's help.
func Strategies() []string {
	return []string{string(record.HuntPCT), string(record.HuntRandom), string(record.HuntDelay)}
}
