package recorder

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"diagnose/replay/record"
	"diagnose/replay/recorder/sites"
)

// copyObjects copies the files that the process has mapped into a portable recording. The name
// of a file is its build-id or, without one, its digest.
func (r *recording) copyObjects(pid int) {
	if !r.run.order.Portable {
		return
	}
	maps, err := sites.Mappings(pid)
	if err != nil {
		r.limit("portable", err.Error())
		return
	}
	for _, m := range maps {
		if m.Path == "" || m.Path[0] != '/' || m.File == nil || r.copied[m.Path] {
			continue
		}
		r.copied[m.Path] = true
		info, err := os.Stat(string(m.Path))
		if err != nil || !info.Mode().IsRegular() {
			continue // a device, or deleted: its bytes are in the data file
		}
		if err := r.copyObject(m.Path); err != nil {
			r.limit("portable", fmt.Sprintf("%s is not in the recording: %v", m.Path, err))
		}
	}
}

func (r *recording) copyObject(name record.Text) error {
	from, err := os.Open(string(name))
	if err != nil {
		return err
	}
	defer from.Close()
	dir := filepath.Join(r.path(), record.ObjectsName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	to, err := os.CreateTemp(dir, ".new-*") // mode 0600
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, h), from)
	if err = errors.Join(err, to.Close()); err != nil {
		os.Remove(to.Name())
		return err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	id := sites.BuildIDOf(string(name))
	if id == "" {
		id = sum
	}
	stored := path.Join(record.ObjectsName, id)
	if err := os.Rename(to.Name(), filepath.Join(r.path(), filepath.FromSlash(stored))); err != nil {
		return err
	}
	r.manifest.Portable = append(r.manifest.Portable, record.Object{Path: name, Stored: stored, SHA256: sum})
	return nil
}
