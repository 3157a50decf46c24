package recorded

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"

	"golang.org/x/sys/unix"

	"diagnose/image/object"
	"diagnose/replay/record"
	"diagnose/replay/tracee"
)

// CheckFiles checks that the program, its libraries and the agent are the recorded ones. A changed
// file would cause a divergence without an apparent reason.
func CheckFiles(rec *record.Recording) error {
	m := rec.Manifest
	if err := checkFile(rec, m.Program.Path, m.Program.BuildID, &m.Program.File); err != nil {
		return err
	}
	seen := map[record.Text]bool{m.Program.Path: true, m.Agent.Path: true}
	for i := range m.Start.Mappings {
		x := &m.Start.Mappings[i]
		if seen[x.Path] || x.BuildID == "" || x.File == nil {
			continue
		}
		seen[x.Path] = true
		if err := checkFile(rec, x.Path, x.BuildID, x.File); err != nil {
			return err
		}
	}
	if m.Agent.SHA256 == "" {
		return nil
	}
	library := string(m.Agent.Path)
	sum, err := librarySum(library)
	if err != nil {
		return tracee.Inputf("replay: the library that recorded: %w", err)
	}
	if sum != m.Agent.SHA256 {
		return tracee.Inputf("replay: %s is not the library that recorded any more", library)
	}
	return nil
}

// mostLibrary bounds the size of the recording library, which has some hundred kilobytes.
const mostLibrary = 64 << 20

// librarySum returns the digest of a file that a manifest names. That may be any file.
func librarySum(path string) (string, error) {
	f, size, err := object.OpenRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if size > mostLibrary {
		return "", fmt.Errorf("%s has %d bytes", path, size)
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, mostLibrary)); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// checkFile checks that a file of the process exists and is the recorded one.
func checkFile(rec *record.Recording, path record.Text, id string, recorded *record.File) error {
	var info unix.Stat_t
	err := unix.Stat(string(path), &info)
	switch {
	case err != nil:
		err = tracee.Inputf("replay: %s, which was recorded: %w", path, err)
	case recorded.Size == 0 || info.Size != recorded.Size || info.Mtim.Nano() != recorded.MTimeNS:
		err = CheckBuild(string(path), id)
	}
	if err == nil {
		return nil
	}
	for _, o := range rec.Manifest.Portable {
		if o.Path == path {
			return tracee.Inputf("%w; the recording has a copy to put there: %s", err, filepath.Join(rec.Dir, filepath.FromSlash(o.Stored)))
		}
	}
	return err
}

// CheckBuild accepts a copy of the recorded file, with the same build-id.
func CheckBuild(path, want string) error {
	f, err := object.Open(path)
	if err != nil {
		return tracee.Inputf("replay: %w", err)
	}
	defer f.Close()
	if got := f.BuildID(); want == "" || got != want {
		return tracee.Inputf("replay: %s is not the recorded file any more: its build-id is %s, the recording has %s", path, orNone(got), orNone(want))
	}
	return nil
}

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return id
}
