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

// huntState is where a hunt that found nothing stopped.
type huntState struct {
	Version int    `json:"version"`
	Next    uint64 `json:"next"`
	Length  uint64 `json:"length"`
}

// mostState bounds what is read of the file.
const mostState = 4096

// statePath is the file of a hunt of this program, as it is built now, with these
// arguments and this strategy.
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

// Resume has a hunt go on where an earlier one stopped, which was of the same
// program and strategy. Without one it begins.
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

// readState reads the file, and nothing that has its name and is none.
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

// Stopped writes down where a hunt stopped that found nothing; after one that did,
// there is nothing to go on with.
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

// Strategies are those of a hunt, for a command's help.
func Strategies() []string {
	return []string{string(record.HuntPCT), string(record.HuntRandom), string(record.HuntDelay)}
}
